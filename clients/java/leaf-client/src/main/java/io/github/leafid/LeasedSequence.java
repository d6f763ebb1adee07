package io.github.leafid;

import java.util.concurrent.atomic.AtomicLong;

/** The IDs under one lease. */
final class LeasedSequence {
    /** Why there is no ID: the lease does not cover its time; the clock is behind; the layout is at its end. */
    static final long ENDED = -1;
    static final long AHEAD = -2;
    static final long OVERFLOW = -3;

    private static final long MAX_AHEAD = 2000; // milliseconds that IDs may be ahead of the clock
    private static final long MIX = 0x9E3779B97F4A7C15L;
    private static final int SPREAD = 3; // bits of the sequence that an idle tick leaves to those that follow

    final WorkerLease lease;
    private final long epoch;
    private final long tickMs;
    private final int sequenceBits;
    private final int shift; // of the tick
    private final long worker; // in its place
    private final long ticks; // of the layout
    private final AtomicLong last; // tick and sequence number of the latest ID

    LeasedSequence(WorkerLease lease) {
        this.lease = lease;
        Layout l = lease.layout();
        epoch = l.epoch();
        tickMs = l.tickMs();
        sequenceBits = l.sequenceBits();
        shift = l.workerBits() + sequenceBits;
        worker = lease.worker() << sequenceBits;
        ticks = 1L << l.timeBits();
        long floor = Math.max(lease.floor(), epoch) - epoch;
        last = new AtomicLong(((floor + tickMs - 1) / tickMs << sequenceBits) - 1);
    }

    /** Returns an ID, or why there is none. */
    long next() {
        for (;;) {
            long before = last.get();
            long now = lease.now();
            long id = candidate(before, now);
            long tick = id >> sequenceBits;
            long begin = epoch + tick * tickMs;
            if (tick >= ticks) {
                return OVERFLOW;
            }
            if (begin > now + MAX_AHEAD) {
                return covers(begin) ? AHEAD : ENDED;
            }
            if (!lease.use(begin, begin + tickMs - 1)) {
                return ENDED;
            }
            if (last.compareAndSet(before, id)) {
                return tick << shift | worker | id & (1L << sequenceBits) - 1;
            }
        }
    }

    /** Reports whether the next ID has a time below the limit. */
    boolean covers() {
        return covers(epoch + (candidate(last.get(), lease.now()) >> sequenceBits) * tickMs);
    }

    private boolean covers(long begin) {
        return begin + tickMs <= lease.limit();
    }

    /** Returns tick and sequence number of the ID after the latest one. */
    private long candidate(long before, long now) {
        long tick = tickMs == 1 ? now - epoch : (now - epoch) / tickMs;
        return tick > before >> sequenceBits ? tick << sequenceBits | first(tick) : before + 1;
    }

    /** Returns the first sequence number of an idle tick, so that IDs of quiet times are not all even. */
    private long first(long tick) {
        return sequenceBits <= SPREAD ? 0 : tick * MIX >>> 64 - (sequenceBits - SPREAD);
    }
}
