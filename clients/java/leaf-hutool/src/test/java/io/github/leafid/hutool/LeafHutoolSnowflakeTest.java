package io.github.leafid.hutool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cn.hutool.core.lang.Snowflake;
import cn.hutool.core.util.IdUtil;
import io.github.leafid.LeafException;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.test.LeafServer;
import org.junit.jupiter.api.Test;

class LeafHutoolSnowflakeTest {
    @Test
    void idUtilHasLeasedIds() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.pool("orders", 10, "1m");
            server.pool("small", 5, "1m");
            try (LeafSnowflake ids = LeafSnowflake.builder(server.url(), "orders").build()) {
                Snowflake snowflake = new LeafHutoolSnowflake(ids).install();
                for (long id : new long[] {snowflake.nextId(), IdUtil.getSnowflakeNextId(), IdUtil.getSnowflake().nextId(), Long.parseLong(snowflake.nextIdStr())}) {
                    assertEquals(ids.lease().worker(), snowflake.getDataCenterId(id) << 5 | snowflake.getWorkerId(id));
                    assertTrue(Math.abs(snowflake.getGenerateDateTime(id) - ids.lease().now()) < 5000);
                }
            }
            try (LeafSnowflake small = LeafSnowflake.builder(server.url(), "small").build()) {
                assertEquals(LeafException.INVALID_ARGUMENT, assertThrows(LeafException.class, () -> new LeafHutoolSnowflake(small)).reason());
            }
        }
    }
}
