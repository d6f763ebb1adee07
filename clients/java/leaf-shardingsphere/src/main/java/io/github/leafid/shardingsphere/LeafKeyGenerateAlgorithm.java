package io.github.leafid.shardingsphere;

import io.github.leafid.IdGenerator;
import io.github.leafid.IdGenerators;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.shardingsphere.infra.algorithm.core.context.AlgorithmSQLContext;
import org.apache.shardingsphere.infra.algorithm.keygen.core.KeyGenerateAlgorithm;

/**
 * The key generate algorithm {@code LEAF} of ShardingSphere 5.5. Its properties are those of
 * {@link IdGenerators#of(Properties)}.
 */
public final class LeafKeyGenerateAlgorithm implements KeyGenerateAlgorithm {
    private volatile IdGenerator ids = IdGenerators.named(IdGenerators.DEFAULT);

    /** Makes the algorithm, as ShardingSphere does. */
    public LeafKeyGenerateAlgorithm() {}

    @Override
    public void init(Properties properties) {
        ids = IdGenerators.of(properties);
    }

    @Override
    public Collection<Long> generateKeys(AlgorithmSQLContext context, int count) {
        List<Long> keys = new ArrayList<>(count);
        if (count > 0) {
            for (long id : ids.next(count)) {
                keys.add(id);
            }
        }
        return keys;
    }

    @Override
    public boolean isSupportAutoIncrement() {
        return true;
    }

    @Override
    public String getType() {
        return "LEAF";
    }
}
