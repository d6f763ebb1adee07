package io.github.leafid.hutool;

import cn.hutool.core.lang.Singleton;
import cn.hutool.core.lang.Snowflake;
import io.github.leafid.LeafException;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.Layout;

/**
 * Hutool's Snowflake with a worker ID that Leaf leases. The pool must have Hutool's layout, which is
 * the layout {@code leaf}.
 *
 * <pre>{@code
 * LeafSnowflake ids = LeafSnowflake.builder("http://leaf-1:8080", "orders").build();
 * new LeafHutoolSnowflake(ids).install();
 * long id = IdUtil.getSnowflakeNextId();
 * }</pre>
 */
public class LeafHutoolSnowflake extends Snowflake {
    private static final long serialVersionUID = 1;
    private static final Layout HUTOOL = new Layout(DEFAULT_TWEPOCH, 1, 41, 10, 12);

    private final transient LeafSnowflake ids;

    /**
     * Makes a Snowflake.
     *
     * @param ids the generator, which the caller closes
     */
    public LeafHutoolSnowflake(LeafSnowflake ids) {
        super(0, 0); // nextId does not use them
        if (!ids.layout().equals(HUTOOL)) {
            throw new LeafException(LeafException.INVALID_ARGUMENT, 0,
                    "the layout of the pool (" + ids.layout() + ") is not Hutool's: create the pool with the layout \"leaf\"", null);
        }
        this.ids = ids;
    }

    @Override
    public long nextId() {
        return ids.next();
    }

    /**
     * Has {@code IdUtil.getSnowflake()} and {@code IdUtil.getSnowflakeNextId()} return IDs of this
     * generator.
     *
     * @return this generator
     */
    public LeafHutoolSnowflake install() {
        Singleton.put(Snowflake.class.getName(), this);
        return this;
    }
}
