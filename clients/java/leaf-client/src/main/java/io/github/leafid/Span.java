package io.github.leafid;

import java.util.concurrent.atomic.AtomicLongFieldUpdater;

/** Keeps what all callers write away from what they only read, in another line of the cache. */
@SuppressWarnings("unused")
abstract class SpanPadBefore {
    private long p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14;
}

abstract class SpanUsed extends SpanPadBefore {
    volatile long used; // IDs reserved from the front; the size or more: drained
}

@SuppressWarnings("unused")
abstract class SpanPadAfter extends SpanUsed {
    private long q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14;
}

/** A granted range with a cursor. A sealed span never serves again. */
final class Span extends SpanPadAfter {
    private static final long SEALED = 1L << 62; // so far beyond every end that late callers cannot wrap it
    private static final AtomicLongFieldUpdater<SpanUsed> USED = AtomicLongFieldUpdater.newUpdater(SpanUsed.class, "used");
    private static final AtomicLongFieldUpdater<Span> QUIET = AtomicLongFieldUpdater.newUpdater(Span.class, "quiet");

    final long start;
    final long size;
    final Grant grant;
    volatile long quiet; // while used is not above this, no caller looks at the stock

    Span(Grant grant) {
        this.grant = grant;
        this.start = grant.start;
        this.size = grant.end - grant.start;
        this.quiet = Math.max(0, Math.min(size / 10 + 1, size - 1));
    }

    /** Reserves one ID and returns the number of those reserved; it is above the size if there was none. */
    long reserveOne() {
        return USED.incrementAndGet(this);
    }

    /** Takes up to n IDs off the front; null when the span is drained. */
    IdRange reserve(long n) {
        if (used >= size) { // keeps late callers from pushing the cursor on
            return null;
        }
        long end = USED.addAndGet(this, n);
        if (end - n >= size) {
            return null;
        }
        return new IdRange(start + end - n, start + Math.min(end, size));
    }

    /** Reports whether it falls to the caller, who reserved up to reserved, to look at the stock. */
    boolean due(long reserved) {
        long q = quiet;
        long next = Math.min(size, reserved + Math.max(1, Math.min(size / 10, (size - reserved) / 2)));
        return reserved > q && QUIET.compareAndSet(this, q, next);
    }

    /** Drains the span and returns the first ID that nobody reserved. */
    long seal() {
        return start + Math.min(USED.getAndSet(this, SEALED), size);
    }

    long issued() {
        return Math.min(used, size);
    }

    long remaining() {
        return size - issued();
    }
}
