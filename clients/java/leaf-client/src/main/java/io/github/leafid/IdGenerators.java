package io.github.leafid;

import java.nio.file.Paths;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Generators by name, for frameworks that make their objects themselves: Hibernate and ShardingSphere.
 *
 * <pre>{@code
 * IdGenerators.register("orders", client.tag("order"));
 * }</pre>
 */
public final class IdGenerators {
    /** The name of the generator that is used where no other one is named. */
    public static final String DEFAULT = "default";

    private static final String[] NAMES = {"servers", "token", "token-file", "pool", "tag", "ttl", "holder"};
    private static final Map<String, IdGenerator> NAMED = new ConcurrentHashMap<>();
    private static final Map<Map<String, String>, IdGenerator> CONFIGURED = new ConcurrentHashMap<>();

    private IdGenerators() {}

    /**
     * Makes a generator available under a name, in place of an earlier one. The caller closes it.
     *
     * @param name the name
     * @param generator the generator
     */
    public static void register(String name, IdGenerator generator) {
        NAMED.put(name, generator);
    }

    /**
     * Removes a generator, if the name still means it.
     *
     * @param name the name
     * @param generator the generator
     */
    public static void unregister(String name, IdGenerator generator) {
        NAMED.remove(name, generator);
    }

    /**
     * Returns the generator of a name at the time of each call, so that it may be registered later.
     *
     * @param name the name
     * @return a generator that fails while none has the name
     */
    public static IdGenerator named(String name) {
        return new IdGenerator() {
            @Override
            public long next() {
                return find(name).next();
            }

            @Override
            public long[] next(int n) {
                return find(name).next(n);
            }
        };
    }

    private static IdGenerator find(String name) {
        IdGenerator g = NAMED.get(name);
        if (g == null) {
            throw LeafException.invalid("no generator of IDs is registered as \"" + name + "\": register one with IdGenerators");
        }
        return g;
    }

    /**
     * Returns the generator that properties describe. Without {@code servers} it is a registered one,
     * {@code generator} or the default. Otherwise it leases a worker ID of {@code pool}, or takes the IDs
     * of {@code tag}. Equal properties mean one generator, which is closed when the JVM ends. Further
     * properties: {@code token}, {@code token-file}, {@code ttl} (seconds) and {@code holder}.
     *
     * @param properties the properties; others are ignored
     * @return the generator
     */
    public static IdGenerator of(Properties properties) {
        String servers = properties.getProperty("servers");
        if (servers == null) {
            return named(properties.getProperty("generator", DEFAULT));
        }
        Map<String, String> given = new TreeMap<>();
        for (String name : NAMES) {
            if (properties.getProperty(name) != null) {
                given.put(name, properties.getProperty(name));
            }
        }
        return CONFIGURED.computeIfAbsent(given, key -> open(servers, properties));
    }

    private static IdGenerator open(String servers, Properties p) {
        String pool = p.getProperty("pool");
        String tag = p.getProperty("tag");
        if ((pool == null) == (tag == null)) {
            throw LeafException.invalid("give either the property \"pool\" or the property \"tag\"");
        }
        if (tag != null) {
            LeafClient client = connect(LeafClient.builder(servers), p).build();
            closeAtExit(client::close);
            return client.tag(tag);
        }
        LeafSnowflake.Builder b = connect(LeafSnowflake.builder(servers, pool), p);
        if (p.getProperty("ttl") != null) {
            b.ttl(Duration.ofSeconds(Long.parseLong(p.getProperty("ttl"))));
        }
        if (p.getProperty("holder") != null) {
            b.holder(p.getProperty("holder"));
        }
        LeafSnowflake ids = b.build();
        closeAtExit(ids::close);
        return ids;
    }

    private static <B extends ServersBuilder<B>> B connect(B b, Properties p) {
        if (p.getProperty("token") != null) {
            b.token(p.getProperty("token"));
        }
        if (p.getProperty("token-file") != null) {
            b.tokenFile(Paths.get(p.getProperty("token-file")));
        }
        return b;
    }

    private static void closeAtExit(Runnable close) {
        Runtime.getRuntime().addShutdownHook(new Thread(close, "leaf-close"));
    }
}
