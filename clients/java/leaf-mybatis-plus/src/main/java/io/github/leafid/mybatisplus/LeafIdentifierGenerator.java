package io.github.leafid.mybatisplus;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.github.leafid.IdGenerator;
import java.util.function.Function;

/**
 * Gives the rows that MyBatis-Plus inserts IDs of Leaf, where the type of the key is
 * {@code ASSIGN_ID}, which is MyBatis-Plus's default.
 *
 * <pre>{@code
 * GlobalConfig config = GlobalConfigUtils.defaults();
 * config.setIdentifierGenerator(new LeafIdentifierGenerator(ids));
 * }</pre>
 */
public class LeafIdentifierGenerator implements IdentifierGenerator {
    private final Function<Object, IdGenerator> chooser;

    /**
     * Makes a generator with the same IDs for all tables.
     *
     * @param ids a generator, such as a LeafSnowflake or a tag of a LeafClient
     */
    public LeafIdentifierGenerator(IdGenerator ids) {
        this(entity -> ids);
    }

    /**
     * Makes a generator that chooses by the entity.
     *
     * @param chooser returns the generator for an entity
     */
    public LeafIdentifierGenerator(Function<Object, IdGenerator> chooser) {
        this.chooser = chooser;
    }

    @Override
    public Number nextId(Object entity) {
        return chooser.apply(entity).next();
    }
}
