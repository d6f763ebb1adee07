package io.github.leafid;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The IDs of one tag in memory. It fetches the next range before the last one is missed.
 *
 * <p>It holds as many IDs as the last outage budget used, at least a step of the tag. It is granted at
 * most twice the IDs that it issues, plus two steps, and what lost answers cost.
 */
final class Stock implements IdGenerator {
    private static final long MIN_RETRY = TimeUnit.MILLISECONDS.toNanos(10); // after a refill that did not start

    private final String tag;
    private final StockOptions options;
    private final IdSource source;
    private final ExecutorService threads;
    private final Runnable unknown; // called once if the tag does not exist

    private volatile Span current = new Span(new Grant(0, 0, 0, null, ""));

    private final ReentrantLock lock = new ReentrantLock(); // guards what follows
    private final Condition changed = lock.newCondition(); // waiting callers should look again
    private final Condition stopped = lock.newCondition(); // the refill should stop, or has stopped
    private final ArrayDeque<Span> queue = new ArrayDeque<>(); // what follows current
    private final StoreHealth health = new StoreHealth();
    private long missing; // how many IDs the waiting callers need
    private boolean refilling;
    private boolean closing;
    private LeafException end; // why no ID will ever be issued again
    private long retired; // IDs issued from earlier spans
    private long step;
    private long granted; // IDs received
    private long grants;
    private long failures;
    private long returned;
    private RecentUse use; // null: no more than a step was issued yet

    Stock(String tag, StockOptions options, IdSource source, ExecutorService threads, Runnable unknown) {
        this.tag = tag;
        this.options = options;
        this.source = source;
        this.threads = threads;
        this.unknown = unknown;
    }

    @Override
    public long next() {
        Span s = current;
        long quiet = s.quiet; // read first: a read after the add waits for it
        long used = s.reserveOne();
        return used <= quiet ? s.start + used - 1 : next(s, used);
    }

    private long next(Span s, long used) {
        if (used <= s.size) {
            if (s.due(used)) {
                topUp();
            }
            return s.start + used - 1;
        }
        return take(1).get(0).start();
    }

    @Override
    public long[] next(int n) {
        return IdRange.flatten(take(n), n);
    }

    /** Takes n IDs as few ranges. */
    List<IdRange> take(long n) {
        if (n < 1 || n > options.maxStock) {
            throw LeafException.invalid("take from \"" + tag + "\": n = " + n + " is not in 1 … " + options.maxStock);
        }
        List<IdRange> out = new ArrayList<>(1);
        Waiter waiter = new Waiter();
        while (n > 0) {
            Span s = current;
            IdRange r = n <= s.remaining() || affordable(n, waiter.delivered) ? s.reserve(n) : null;
            if (r == null) {
                waiter.await(s, n);
                continue;
            }
            append(out, r);
            n -= r.size();
            if (s.due(r.end() - s.start)) {
                topUp();
            }
        }
        return out;
    }

    private static void append(List<IdRange> out, IdRange r) {
        int last = out.size() - 1;
        if (last >= 0 && out.get(last).end() == r.start()) {
            out.set(last, new IdRange(out.get(last).start(), r.end()));
        } else {
            out.add(r);
        }
    }

    private boolean affordable(long n, boolean delivered) {
        lock.lock();
        try {
            return affords(n, delivered);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Reports whether a call for n IDs should take the available ones although it may have to wait for
     * the rest. A batch that cannot be complete must not use up IDs that single calls could get.
     */
    private boolean affords(long n, boolean delivered) {
        long stock = stock();
        return stock >= n || delivered || stock > issued() + step;
    }

    /** A caller that the stock did not serve at once. */
    private final class Waiter {
        private boolean delivered; // the servers have delivered while it waited
        private long deadline;
        private boolean waited;

        /** Returns when the caller, who got no IDs of s and needs n, should look again. */
        void await(Span s, long n) {
            lock.lock();
            try {
                if (current != s || s.remaining() == 0 && pop() || s.remaining() > 0 && affords(n, delivered)) {
                    return;
                }
                if (end != null) {
                    throw again(end);
                }
                if (!waited) {
                    waited = true;
                    deadline = System.nanoTime() + options.wait;
                }
                boolean trying = refilling;
                startRefill();
                LeafException verdict = health.verdict(options.wait, trying);
                if (verdict != null) {
                    throw exhausted(verdict);
                }
                pause(n);
            } finally {
                lock.unlock();
            }
        }

        private void pause(long n) {
            long before = grants;
            missing += n;
            try {
                changed.awaitNanos(Math.min(deadline - System.nanoTime(), untilRefill()));
                if (deadline - System.nanoTime() <= 0 && grants == before) {
                    throw exhausted(health.error);
                }
            } catch (InterruptedException e) {
                throw LeafException.interrupted();
            } finally {
                missing -= n;
            }
            if (grants > before) {
                delivered = true;
                deadline = System.nanoTime() + options.wait; // they deliver, even if to other callers
            }
        }
    }

    /** Makes the next span of the queue current; the current one is drained. */
    private boolean pop() {
        if (queue.isEmpty()) {
            return false;
        }
        retired += current.size;
        current = queue.removeFirst();
        return true;
    }

    private void topUp() {
        lock.lock();
        try {
            if (size() >= 0) {
                startRefill();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Returns how long a caller waits before it tries to start the refill: for ever while that runs. */
    private long untilRefill() {
        return refilling || closing || end != null ? Long.MAX_VALUE : Math.max(MIN_RETRY, health.pause());
    }

    private void startRefill() {
        if (refilling || closing || end != null) {
            return;
        }
        health.resume(options.wait);
        refilling = true;
        try {
            threads.execute(this::refill);
        } catch (RejectedExecutionException e) { // the client is being closed
            refilling = false;
        } catch (Throwable e) { // an Error too: memory for a thread may be missing for a while
            refilling = false;
            failures++;
            health.failed(LeafException.of(e), true);
        }
    }

    /** Calls the servers until the stock is full again. One thread does it at a time. */
    private void refill() {
        boolean more = false;
        try {
            do {
                more = true;
                long n = prepare();
                more = n >= 0 && call(n);
            } while (more);
        } finally {
            if (more) { // an Error: memory may be missing for a while
                lock.lock();
                refillDone();
                lock.unlock();
            }
        }
    }

    /** Calls the servers once, and reports whether to do so again. */
    private boolean call(long n) {
        Grant grant = null;
        LeafException error = null;
        try {
            grant = source.advance(tag, n);
        } catch (LeafException e) {
            error = e;
        } catch (Throwable e) {
            error = new LeafException("INTERNAL", 0, e.toString(), e);
        }
        return apply(grant, error);
    }

    /** Waits out the back-off and returns how much to ask for, or -1 if nothing is due. */
    private long prepare() {
        lock.lock();
        try {
            for (long pause = health.pause(); pause > 0 && !closing && end == null; pause = health.pause()) {
                stopped.awaitNanos(pause);
            }
            long n = closing || end != null ? -1 : size();
            if (n >= 0 && health.error != null && health.error.is(LeafException.FOREIGN_STORE)) {
                n = 1; // the grant will be discarded
            }
            if (n < 0) {
                refillDone();
            }
            return n;
        } catch (InterruptedException e) { // the client has been closed
            refillDone();
            return -1;
        } finally {
            lock.unlock();
        }
    }

    private void refillDone() {
        refilling = false;
        stopped.signalAll();
    }

    /** Returns how many IDs to ask for now; 0: a step of the tag; -1: none. */
    private long size() {
        if (grants == 0) {
            return 0;
        }
        long stock = stock();
        long n = Sizing.size(stock, missing, step, issued(), recent(), options.maxStock);
        if (n > 0 && health.error != null) { // answers may be lost again and again: that must cost little
            n = Math.max(1, Math.min(n, Math.max(step, missing - stock)));
        }
        return n > 0 ? n : -1;
    }

    private long recent() {
        long issued = issued();
        if (use == null) {
            if (issued <= step) {
                return issued;
            }
            use = new RecentUse(options.outageBudget, System.nanoTime());
        }
        return use.observe(System.nanoTime(), issued);
    }

    /** Applies the result of a call and reports whether to call again. */
    private boolean apply(Grant grant, LeafException error) {
        lock.lock();
        try {
            boolean again = false;
            if (grant != null) {
                granted += grant.end - grant.start;
                if (end == null) {
                    again = true; // prepare says whether more is due
                    accept(grant);
                }
            } else if (end == null && error.is(LeafException.UNKNOWN_TAG)) {
                finish(error);
                unknown.run();
            } else if (end == null) {
                failures++;
                health.failed(error, missing > 0);
                if (health.verdict(options.wait, true) != null) {
                    changed.signalAll();
                }
                again = !health.isVerdict() && (missing > 0 || grants > 0);
            }
            if (!again) {
                refillDone();
            }
            return again;
        } finally {
            lock.unlock();
        }
    }

    private void accept(Grant grant) {
        grants++;
        step = grant.step;
        health.succeeded();
        queue.addLast(new Span(grant));
        changed.signalAll();
    }

    /** Stops for good, and gives the unused end of the stock back if no other program took IDs since. */
    void close() {
        Rest rest;
        lock.lock();
        try {
            if (closing || end != null) {
                return;
            }
            closing = true;
            stopped.signalAll();
            boolean quiet = awaitRefill();
            rest = finish(new LeafException(LeafException.CLOSED, "tag \"" + tag + "\": the client is closed"));
            if (!quiet || rest == null) {
                return;
            }
        } finally {
            lock.unlock();
        }
        source.giveBack(tag, rest.last, rest.start);
        lock.lock();
        returned += rest.last.end - rest.start;
        lock.unlock();
    }

    /** Waits for the call under way, at most for as long as one may take. */
    private boolean awaitRefill() {
        long left = options.callTimeout;
        try {
            while (refilling && left > 0) {
                left = stopped.awaitNanos(left);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return !refilling;
    }

    /** The unused IDs at the end of the last grants that follow one another. */
    private static final class Rest {
        final long start;
        final Grant last;

        Rest(long start, Grant last) {
            this.start = start;
            this.last = last;
        }
    }

    /** Seals all spans and wakes the waiting callers with an error. Returns null if no ID is left. */
    private Rest finish(LeafException error) {
        end = error;
        queue.addFirst(current);
        Rest rest = null;
        for (Span s : queue) {
            long start = s.seal();
            retired += start - s.start;
            if (start < s.start + s.size) {
                boolean follows = rest != null && rest.last.end == start && rest.last.server == s.grant.server;
                rest = new Rest(follows ? rest.start : start, s.grant);
            }
        }
        queue.clear();
        changed.signalAll();
        stopped.signalAll();
        return rest;
    }

    private LeafException exhausted(LeafException cause) {
        String prefix = "tag \"" + tag + "\": ";
        if (cause == null) {
            long ms = TimeUnit.NANOSECONDS.toMillis(options.wait);
            return new LeafException(LeafException.EXHAUSTED, prefix + "no IDs in memory, and no server has answered within " + ms + " ms");
        }
        boolean keep = StoreHealth.isFinal(cause) || cause.is(LeafException.UNAUTHENTICATED) || cause.is(LeafException.FORBIDDEN)
                || StoreHealth.isRefusal(cause);
        String reason = keep ? cause.reason() : LeafException.EXHAUSTED;
        return new LeafException(reason, cause.status(), prefix + "no IDs in memory: " + cause.getMessage(), cause);
    }

    private static LeafException again(LeafException e) {
        return new LeafException(e.reason(), e.status(), e.getMessage(), e);
    }

    private long stock() {
        long n = current.remaining();
        for (Span s : queue) {
            n += s.remaining();
        }
        return n;
    }

    private long issued() {
        return end != null ? retired : retired + current.issued(); // at the end all is retired
    }

    TagStats stats() {
        lock.lock();
        try {
            long issued = issued();
            long stock = end != null ? 0 : stock();
            return new TagStats(tag, stock, issued, granted, returned, failures);
        } finally {
            lock.unlock();
        }
    }
}
