package io.github.leafid;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;

/** Takes ranges off what servers hold in memory. */
final class ServerSource implements IdSource {
    private static final int MAX_CALLS = 64; // under way

    private final Servers servers;
    private final Semaphore places = new Semaphore(MAX_CALLS);
    private final Map<String, String> latest = new ConcurrentHashMap<>(); // tag to the version of its latest grant
    private final AtomicReference<String> store = new AtomicReference<>(); // identity of the servers' store

    ServerSource(Servers servers) {
        this.servers = servers;
    }

    @Override
    public Grant advance(String tag, long n) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("tag", tag);
        fields.put("count", Long.toString(n));
        fields.put("before", latest.get(tag));
        places.acquireUninterruptibly();
        try {
            Grant grant = servers.repeat(Request.connect("Advance", fields, (server, answer) -> read(server, answer, n)), true);
            latest.put(tag, grant.version);
            return grant;
        } finally {
            places.release();
        }
    }

    private Grant read(Server server, Map<String, Object> answer, long n) {
        Map<?, ?> range = Json.map(answer, "range");
        long start = Json.number(range, "start");
        long end = Json.number(range, "end");
        long step = Json.number(answer, "step");
        if (start < 0 || end <= start || n > 0 && end - start > n || step < 1) {
            throw new IllegalArgumentException("it granted [" + start + ", " + end + ") with step " + step + " when asked for " + n);
        }
        checkStore(server, Json.string(answer, "store"));
        return new Grant(start, end, step, server, Json.string(answer, "version"));
    }

    /** Refuses a server of another store than the first one: its IDs may be in use. */
    void checkStore(Server server, String identity) {
        if (identity.isEmpty()) {
            return;
        }
        store.compareAndSet(null, identity);
        boolean known = store.get().equals(identity);
        server.proven = known;
        if (!known) {
            throw new LeafException(LeafException.FOREIGN_STORE, "leaf server " + server.host + " has another store: its identity is " + identity
                    + ", that of the known store is " + store.get());
        }
    }

    @Override
    public void giveBack(String tag, Grant last, long start) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("tag", tag);
        fields.put("start", Long.toString(start));
        fields.put("end", Long.toString(last.end));
        fields.put("version", last.version);
        servers.once(Request.connect("Return", fields, (server, answer) -> null), last.server);
    }
}
