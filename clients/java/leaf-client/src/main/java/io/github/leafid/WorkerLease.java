package io.github.leafid;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The right of this process to make IDs of one worker ID, for a snowflake library of your own.
 *
 * <p>The time t inside each ID must be {@code floor() <= t < limit()}: ask {@link #use(long)} before
 * you return an ID. The lease renews itself in the background, so the limit grows. It may be used up to
 * the limit, whatever happens to the servers. No clock has to be right for that.
 *
 * <pre>{@code
 * WorkerLease lease = WorkerLease.builder("http://leaf-1:8080", "orders").onLost(e -> …).claim();
 * long id = library.nextId();
 * if (!lease.use(timeOf(id))) {
 *     throw new IllegalStateException("the lease is over");
 * }
 * lease.close();
 * }</pre>
 *
 * <p>Its methods may be called by several threads.
 */
public final class WorkerLease implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(WorkerLease.class.getName());
    private static final String PATH = "/v1/workers/leases";
    private static final long SEALED = Long.MAX_VALUE;
    private static final long UNUSED = Long.MIN_VALUE;
    private static final long MAX_RETRY = 1000; // milliseconds after a renewal that failed
    private static final long MIN_RETRY = 50;

    private final Servers servers;
    private final ScheduledExecutorService timer;
    private final String ttl; // null: the server's default
    private final Consumer<LeafException> onLost;
    private final Runnable onRenewed; // null: nothing
    private final String id;
    private final String pool;
    private final long worker;
    private final Layout layout;
    private final long floor;
    private final AtomicLong used = new AtomicLong(UNUSED); // latest time in an ID, or SEALED
    private final AtomicBoolean lost = new AtomicBoolean();
    private final long lasts; // milliseconds that a claim or a renewal gives
    private final boolean owner; // of servers and timer
    private boolean renewed = true; // by the latest try; of the timer's thread
    private volatile long limit;
    private volatile RegistryClock clock;
    private long sealedAt = UNUSED; // used as it was; guarded by this
    private boolean released; // guarded by this

    private WorkerLease(Builder b, Servers servers, ScheduledExecutorService timer, Runnable onRenewed) {
        this.servers = servers;
        this.timer = timer;
        this.owner = onRenewed == null;
        this.onRenewed = onRenewed;
        this.ttl = b.ttl == null ? null : text(b.ttl);
        this.onLost = b.onLost;
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("pool", b.pool);
        fields.put("holder", b.holder);
        fields.put("ttl", ttl);
        Answer a = call("ClaimLease", "POST", PATH, Json.write(fields));
        this.id = Json.string(a.fields, "lease");
        this.pool = Json.string(a.fields, "pool");
        this.worker = Json.number(a.fields, "worker");
        this.layout = Layout.read(Json.map(a.fields, "layout"));
        this.floor = Json.number(a.fields, "floor");
        this.limit = a.limit;
        this.clock = a.clock;
        this.lasts = a.limit - a.now;
        if (id.isEmpty() || worker < 0 || worker >>> layout.workerBits() != 0) {
            throw new LeafException(LeafException.UNAVAILABLE, "the answer to a claim has no lease");
        }
        try {
            renewIn(a.renewIn());
        } catch (Error e) { // the thread of the timer does not start
            close();
            throw e;
        }
    }

    /**
     * Begins a lease.
     *
     * @param servers a URL such as http://h1:8080,h2:8080 or https://TOKEN@h1:8443
     * @param pool the pool of worker IDs
     * @return a builder
     */
    public static Builder builder(String servers, String pool) {
        return new Builder(servers, pool);
    }

    /** The pool, the layout and the worker ID never change; floor and limit are of the registry's clock. */
    private static final class Answer {
        final Map<?, ?> fields;
        final RegistryClock clock;
        final long now;
        final long limit;

        Answer(Map<?, ?> fields, RegistryClock clock) {
            this.fields = fields;
            this.clock = clock;
            this.now = Json.number(fields, "now");
            this.limit = Json.number(fields, "limit");
        }

        long renewIn() {
            return Math.max(1, Json.number(fields, "renew_at") - now);
        }
    }

    private Answer call(String procedure, String method, String path, String body) {
        long sent = System.nanoTime();
        return servers.repeat(new Request<>(procedure, method, path, body, (server, answer) ->
                new Answer(answer, new RegistryClock(Json.number(answer, "now"), sent, System.nanoTime()))), false);
    }

    private void renewIn(long ms) {
        try {
            timer.schedule(this::renew, ms, TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException e) { // the generator is being closed
            LOG.log(Level.FINE, "no renewal", e);
        }
    }

    private void renew() {
        if (isSealed() || lost.get()) {
            return;
        }
        try {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("ttl", ttl);
            Answer a = call("RenewLease", "POST", PATH + "/" + id, Json.write(fields));
            limit = Math.max(limit, a.limit);
            clock = a.clock;
            renewed = true;
            if (onRenewed != null) {
                onRenewed.run();
            }
            renewIn(a.renewIn());
        } catch (Throwable e) { // an Error too: memory for a thread may be missing for a while
            renewAgain(LeafException.of(e));
        }
    }

    private void renewAgain(LeafException e) {
        long left = limit - clock.latest();
        if (e.is(LeafException.LEASE_LOST) || left < lasts / 10) {
            lose(e);
            return;
        }
        renewIn(Math.max(MIN_RETRY, Math.min(MAX_RETRY, (left - lasts / 10) / 4)));
        if (renewed) {
            renewed = false;
            LOG.log(Level.WARNING, "the lease of worker ID {0} was not renewed; it lasts for {1} ms: {2}", new Object[] {worker, left, e.getMessage()});
        }
    }

    private void lose(LeafException e) {
        if (isSealed() || !lost.compareAndSet(false, true) || onLost == null) {
            return;
        }
        try {
            onLost.accept(e);
        } catch (Throwable failure) {
            LOG.log(Level.SEVERE, "onLost failed", failure);
        }
    }

    /**
     * Reports whether an ID with this time may be returned, and remembers the latest time for the
     * release. Call it after the ID was made and before it is returned.
     *
     * @param time the time inside the ID, in Unix milliseconds
     * @return false: drop the ID; the lease does not cover it
     */
    public boolean use(long time) {
        return use(time, time);
    }

    /** Reports whether an ID with the times from first to last may be returned. */
    boolean use(long first, long last) {
        if (first < floor || last >= limit) {
            return false;
        }
        for (long u = used.get(); u < last; u = used.get()) {
            if (used.compareAndSet(u, last)) {
                return true;
            }
        }
        return used.get() != SEALED;
    }

    /** Ends the use of the lease: {@link #use(long)} returns false from now on. */
    public synchronized void seal() {
        long u = used.getAndSet(SEALED);
        if (u != SEALED) {
            sealedAt = u;
        }
    }

    /**
     * Seals the lease and gives the worker ID back, with the latest time for which {@link #use(long)}
     * returned true. A second call does nothing. If no server answers, the worker ID is free at the limit.
     */
    @Override
    public void close() {
        try {
            release();
        } catch (LeafException e) {
            LOG.log(Level.FINE, "the worker ID is free at the limit of its lease", e);
        }
        if (owner) {
            timer.shutdownNow();
            servers.close();
        }
    }

    /**
     * Gives the worker ID back as {@link #close()} does, and tells if that fails. Close the lease
     * afterwards.
     *
     * @throws LeafException if no server has taken it; a later call tries again
     */
    public void release() {
        seal();
        synchronized (this) {
            if (released) {
                return;
            }
            String latest = sealedAt == UNUSED ? "none" : Long.toString(sealedAt);
            try {
                servers.repeat(new Request<>("ReleaseLease", "DELETE", PATH + "/" + id + "?used=" + latest, null, (server, answer) -> ""), false);
            } catch (LeafException e) {
                if (!e.is(LeafException.LEASE_LOST)) { // it is over already
                    throw e;
                }
            }
            released = true;
        }
    }

    /**
     * Returns the name of the lease. It is a secret: whoever has it can renew and release.
     *
     * @return the name
     */
    public String id() {
        return id;
    }

    /**
     * Returns the pool.
     *
     * @return its name
     */
    public String pool() {
        return pool;
    }

    /**
     * Returns the worker ID.
     *
     * @return the worker ID
     */
    public long worker() {
        return worker;
    }

    /**
     * Returns the layout of the pool.
     *
     * @return the bits of its IDs
     */
    public Layout layout() {
        return layout;
    }

    /**
     * Returns the earliest time that an ID may have.
     *
     * @return Unix milliseconds
     */
    public long floor() {
        return floor;
    }

    /**
     * Returns the end of the times that an ID may have. It grows with each renewal.
     *
     * @return Unix milliseconds
     */
    public long limit() {
        return limit;
    }

    /**
     * Returns the time of the registry's clock. It does not depend on this machine's date.
     *
     * @return Unix milliseconds, late by at most the duration of a call
     */
    public long now() {
        return clock.earliest();
    }

    /**
     * Reports whether the lease has certainly not ended, by the registry's clock.
     *
     * @return false once it is sealed or its limit may have come
     */
    public boolean isValid() {
        return !isSealed() && clock.latest() < limit;
    }

    private boolean isSealed() {
        return used.get() == SEALED;
    }

    private static String text(Duration d) {
        return d.getSeconds() % 60 == 0 ? d.toMinutes() + "m" : d.getSeconds() + "s";
    }

    @Override
    public String toString() { // without the secret
        return "worker ID " + worker + " of pool " + pool + " for times from " + floor + " up to " + limit;
    }

    /** The options of a {@link WorkerLease}. */
    public static final class Builder extends ServersBuilder<Builder> {
        final String pool;
        Duration ttl;
        String holder = hostName();
        Consumer<LeafException> onLost;

        Builder(String url, String pool) {
            super(url);
            this.pool = pool;
        }

        /** Copies the options of a generator. Later changes of its builder have no effect. */
        Builder(ServersBuilder<?> servers, Builder b, Consumer<LeafException> onLost) {
            super(servers);
            pool = b.pool;
            ttl = b.ttl;
            holder = b.holder;
            this.onLost = onLost;
        }

        @Override
        Builder self() {
            return this;
        }

        /**
         * Sets how long a claim or a renewal lasts, in whole seconds; default 5 minutes.
         *
         * @param ttl the time
         * @return this builder
         */
        public Builder ttl(Duration ttl) {
            this.ttl = ttl;
            return this;
        }

        /**
         * Names this process, for people; default: the name of the host.
         *
         * @param holder the name
         * @return this builder
         */
        public Builder holder(String holder) {
            this.holder = holder;
            return this;
        }

        /**
         * Sets what is called, once and in another thread, when the lease will not be renewed any more: the
         * registry says that it is over, or no renewal has succeeded until a tenth of its time was left. It
         * may be used up to {@link WorkerLease#limit()}; claim another one before.
         *
         * @param callback gets the reason
         * @return this builder
         */
        public Builder onLost(Consumer<LeafException> callback) {
            this.onLost = callback;
            return this;
        }

        @Override
        void check() {
            super.check();
            if (ttl != null) {
                positive("ttl", ttl);
                if (ttl.getNano() != 0) {
                    throw LeafException.invalid("ttl is not in whole seconds");
                }
            }
        }

        /**
         * Claims the lease.
         *
         * @return the lease
         * @throws LeafException NO_FREE_WORKER_ID, UNKNOWN_POOL, UNAVAILABLE, UNAUTHENTICATED and others
         */
        public WorkerLease claim() {
            Servers servers = new Servers(this);
            ScheduledExecutorService timer = timer();
            try {
                return new WorkerLease(this, servers, timer, null);
            } catch (RuntimeException | Error e) {
                timer.shutdownNow();
                servers.close();
                throw e;
            }
        }

        WorkerLease claim(Servers servers, ScheduledExecutorService timer, Runnable onRenewed) {
            return new WorkerLease(this, servers, timer, onRenewed);
        }

        static ScheduledExecutorService timer() {
            ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, task -> {
                Thread t = new Thread(task, "leaf-lease");
                t.setDaemon(true);
                return t;
            });
            timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
            return timer;
        }

        private static String hostName() {
            try {
                return InetAddress.getLocalHost().getHostName();
            } catch (UnknownHostException e) {
                return "";
            }
        }
    }
}
