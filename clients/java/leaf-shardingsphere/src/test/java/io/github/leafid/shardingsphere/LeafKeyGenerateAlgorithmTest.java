package io.github.leafid.shardingsphere;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.leafid.test.LeafServer;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.shardingsphere.infra.algorithm.core.context.AlgorithmSQLContext;
import org.apache.shardingsphere.infra.algorithm.keygen.core.KeyGenerateAlgorithm;
import org.apache.shardingsphere.infra.spi.type.typed.TypedSPILoader;
import org.junit.jupiter.api.Test;

class LeafKeyGenerateAlgorithmTest {
    private static KeyGenerateAlgorithm load(String... properties) {
        Properties p = new Properties();
        for (int i = 0; i < properties.length; i += 2) {
            p.setProperty(properties[i], properties[i + 1]);
        }
        return TypedSPILoader.getService(KeyGenerateAlgorithm.class, "LEAF", p); // as ShardingSphere does
    }

    @Test
    void generatesKeys() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.pool("orders", 10, "1m");
            server.tag("order", 100);
            AlgorithmSQLContext context = new AlgorithmSQLContext("db", "schema", "orders", "id");
            Set<Object> keys = new HashSet<>();
            for (int i = 0; i < 3; i++) { // ShardingSphere makes the algorithm again with each change of its rules
                KeyGenerateAlgorithm leased = load("servers", server.url(), "pool", "orders", "ttl", "60");
                keys.addAll(leased.generateKeys(context, 1000));
            }
            assertEquals(3000, keys.size());
            assertEquals(1, server.leaf("worker", "list", "--pool", "orders").lines().filter(l -> l.matches("^[0-9]+ .*")).count(), "one lease");
            KeyGenerateAlgorithm ofTag = load("servers", server.url(), "tag", "order");
            assertEquals(List.of(1L, 2L, 3L), List.copyOf(ofTag.generateKeys(context, 3)));
            assertTrue(ofTag.generateKeys(context, 0).isEmpty());
        }
    }
}
