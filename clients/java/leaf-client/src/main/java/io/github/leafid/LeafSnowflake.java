package io.github.leafid;

import java.time.Duration;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Makes snowflake IDs in this process, with a worker ID that it leases from Leaf servers.
 *
 * <pre>{@code
 * LeafSnowflake ids = LeafSnowflake.builder("http://leaf-1:8080,leaf-2:8080", "orders").build();
 * long id = ids.next();
 * ids.close();
 * }</pre>
 *
 * <p>It renews the lease in the background, and claims another one when that fails. It compares the
 * time inside each ID with the lease before it returns the ID, so a process that was paused waits for
 * another lease, or fails. Its time is that of the registry, counted by the monotonic clock of the JVM:
 * the date of this machine does not matter.
 *
 * <p>Its methods may be called by several threads.
 */
public final class LeafSnowflake implements IdGenerator, AutoCloseable {
    private static final Logger LOG = Logger.getLogger(LeafSnowflake.class.getName());
    private static final long MAX_PAUSE = 2000; // milliseconds between two claims that failed

    private final WorkerLease.Builder options;
    private final Duration wait;
    final Servers servers;
    private final ScheduledExecutorService timer = WorkerLease.Builder.timer();
    private final ReentrantLock lock = new ReentrantLock(); // guards what follows
    private final Condition changed = lock.newCondition(); // another lease, a later limit, or an error
    private volatile LeasedSequence current;
    private LeafException error; // why there is no lease; null: none is known
    private boolean closed;
    private int failures; // in a row

    private LeafSnowflake(Builder b) {
        b.check();
        options = new WorkerLease.Builder(b, b.lease, this::replace);
        wait = b.wait;
        servers = new Servers(options);
        try {
            current = new LeasedSequence(firstClaim(b.startWait));
        } catch (RuntimeException | Error e) {
            timer.shutdownNow();
            servers.close();
            throw e;
        }
    }

    /**
     * Begins a generator.
     *
     * @param servers a URL such as http://h1:8080,h2:8080 or https://TOKEN@h1:8443
     * @param pool the pool of worker IDs
     * @return a builder
     */
    public static Builder builder(String servers, String pool) {
        return new Builder(servers, pool);
    }

    /** Claims a lease, and waits if there may be one soon: a stopped process may have been ahead of the clock. */
    private WorkerLease firstClaim(Duration startWait) {
        long deadline = System.nanoTime() + startWait.toNanos();
        for (int tries = 0;; tries++) {
            try {
                return claim();
            } catch (LeafException e) {
                long pause = TimeUnit.MILLISECONDS.toNanos(pause(tries));
                if (e.status() != 503 && !e.is(LeafException.UNAVAILABLE) && !e.is("CONFLICT") || System.nanoTime() + pause > deadline) {
                    throw e;
                }
                LockSupport.parkNanos(pause);
                if (Thread.interrupted()) {
                    throw LeafException.interrupted();
                }
            }
        }
    }

    private static long pause(int failures) {
        return Math.min(MAX_PAUSE, 50L << Math.min(failures, 10));
    }

    private WorkerLease claim() {
        return options.claim(servers, timer, this::signal);
    }

    @Override
    public long next() {
        LeasedSequence s = current;
        long id = s.next();
        return id >= 0 ? id : await(s, id);
    }

    /** Returns an ID after a wait, for a caller to whom s gave the reason why instead of an ID. */
    private long await(LeasedSequence s, long why) {
        long deadline = System.nanoTime() + wait.toNanos();
        for (long id = why;; id = s.next()) {
            if (id >= 0) {
                return id;
            }
            if (id == LeasedSequence.OVERFLOW) {
                throw new LeafException(LeafException.OVERFLOW, "the layout has no ID of this time: " + s.lease.layout());
            }
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                throw tooLate(id);
            }
            if (id == LeasedSequence.AHEAD) {
                LockSupport.parkNanos(Math.min(left, TimeUnit.MILLISECONDS.toNanos(1)));
                if (Thread.interrupted()) {
                    throw LeafException.interrupted();
                }
            } else {
                awaitLease(s, left);
            }
            s = current;
        }
    }

    private LeafException tooLate(long why) {
        if (why == LeasedSequence.AHEAD) {
            return new LeafException(LeafException.EXHAUSTED, "more IDs in a second than the layout has");
        }
        lock.lock();
        try {
            String text = "this process has no lease of a worker ID" + (error == null ? "" : ": " + error.getMessage());
            return new LeafException(LeafException.NO_WORKER_ID, error == null ? 0 : error.status(), text, error);
        } finally {
            lock.unlock();
        }
    }

    /** Waits until another lease has come, or the limit of this one has grown. */
    private void awaitLease(LeasedSequence s, long nanos) {
        lock.lock();
        try {
            if (closed) {
                throw new LeafException(LeafException.CLOSED, "the generator is closed");
            }
            if (current == s && !s.covers()) {
                changed.awaitNanos(nanos);
            }
        } catch (InterruptedException e) {
            throw LeafException.interrupted();
        } finally {
            lock.unlock();
        }
    }

    private void signal() {
        lock.lock();
        try {
            error = null;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Claims another lease, in the thread of the timer, and gives the lost one back. */
    private void replace(LeafException why) {
        WorkerLease next = null;
        LeafException failed = why;
        try {
            next = claim();
        } catch (Throwable e) { // an Error too: memory for a thread may be missing for a while
            failed = LeafException.of(e);
        }
        WorkerLease old;
        lock.lock();
        try {
            old = closed ? next : current.lease;
            if (!closed && next != null) {
                current = new LeasedSequence(next);
            }
            error = next == null ? failed : null;
            failures = next == null ? failures + 1 : 0;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        if (next == null) {
            retry(failed);
            if (failures == 1) {
                LOG.log(Level.WARNING, "no lease of a worker ID: {0}", failed.getMessage());
            }
        } else {
            LOG.log(Level.INFO, "{0} after a lost lease", next);
            old.close();
        }
    }

    private void retry(LeafException why) {
        if (!timer.isShutdown()) {
            timer.schedule(() -> replace(why), pause(failures), TimeUnit.MILLISECONDS);
        }
    }

    /**
     * Returns the layout of the pool, which takes IDs apart.
     *
     * @return the bits of its IDs
     */
    public Layout layout() {
        return current.lease.layout();
    }

    /**
     * Returns the present lease, for figures.
     *
     * @return the lease; do not release it
     */
    public WorkerLease lease() {
        return current.lease;
    }

    /** Stops the generator and gives the worker ID back. Later calls fail. */
    @Override
    public void close() {
        LeasedSequence last;
        lock.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            last = current;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        timer.shutdown(); // a claim under way ends by itself
        last.lease.close();
        try {
            if (timer.awaitTermination(options.callTimeout.toMillis(), TimeUnit.MILLISECONDS)) {
                servers.close();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The options of a {@link LeafSnowflake}. */
    public static final class Builder extends ServersBuilder<Builder> {
        final WorkerLease.Builder lease;
        Duration wait = Duration.ofSeconds(1);
        Duration startWait = Duration.ofSeconds(10);

        Builder(String url, String pool) {
            super(url);
            lease = new WorkerLease.Builder(url, pool);
        }

        @Override
        Builder self() {
            return this;
        }

        /**
         * Sets how long a lease lasts after a claim or a renewal; default 5 minutes.
         *
         * @param ttl whole seconds
         * @return this builder
         */
        public Builder ttl(Duration ttl) {
            lease.ttl(ttl);
            return this;
        }

        /**
         * Names this process, for people; default: the name of the host.
         *
         * @param holder the name
         * @return this builder
         */
        public Builder holder(String holder) {
            lease.holder(holder);
            return this;
        }

        /**
         * Sets how long a call waits for a lease, or for the clock; default 1 s.
         *
         * @param wait the time
         * @return this builder
         */
        public Builder wait(Duration wait) {
            this.wait = wait;
            return this;
        }

        /**
         * Sets how long {@link #build()} tries to claim a lease while no server answers or no worker ID is
         * free; default 10 s. Zero means one try.
         *
         * @param wait the time
         * @return this builder
         */
        public Builder startWait(Duration wait) {
            this.startWait = wait;
            return this;
        }

        /**
         * Claims a lease and makes the generator.
         *
         * @return the generator
         * @throws LeafException as {@link WorkerLease.Builder#claim()}
         */
        public LeafSnowflake build() {
            return new LeafSnowflake(this);
        }

        @Override
        void check() {
            super.check();
            positive("wait", wait);
            if (startWait.isNegative()) {
                throw LeafException.invalid("startWait is negative");
            }
        }
    }
}
