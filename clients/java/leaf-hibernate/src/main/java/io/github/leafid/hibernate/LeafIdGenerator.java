package io.github.leafid.hibernate;

import io.github.leafid.IdGenerator;
import io.github.leafid.IdGenerators;
import java.io.Serializable;
import java.util.Properties;
import org.hibernate.MappingException;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.id.IdentifierGenerator;
import org.hibernate.service.ServiceRegistry;
import org.hibernate.type.Type;

/**
 * Gives entities IDs of Leaf, in Hibernate 5.6 and 6. The key is a Long or a String.
 *
 * <pre>{@code
 * @Id
 * @GeneratedValue(generator = "leaf")
 * @GenericGenerator(name = "leaf", strategy = "io.github.leafid.hibernate.LeafIdGenerator")
 * private Long id;
 * }</pre>
 *
 * <p>The IDs are those of the generator that {@link IdGenerators} has under the parameter
 * {@code generator}, or under the default name. Parameters may describe a generator instead: see
 * {@link IdGenerators#of(Properties)}.
 */
public class LeafIdGenerator implements IdentifierGenerator {
    private IdGenerator ids = IdGenerators.named(IdGenerators.DEFAULT);
    private boolean text;

    /** Makes the generator, as Hibernate does. */
    public LeafIdGenerator() {}

    @Override
    public void configure(Type type, Properties parameters, ServiceRegistry services) {
        Class<?> key = type.getReturnedClass();
        text = key == String.class;
        if (!text && key != Long.class && key != long.class) {
            throw new MappingException("the key of type " + key.getName() + " cannot hold an ID of Leaf: make it a Long or a String");
        }
        ids = IdGenerators.of(parameters);
    }

    @Override
    public Serializable generate(SharedSessionContractImplementor session, Object entity) {
        long id = ids.next();
        return text ? (Serializable) Long.toString(id) : (Serializable) id;
    }
}
