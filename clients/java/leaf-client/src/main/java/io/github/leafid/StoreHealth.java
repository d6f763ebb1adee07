package io.github.leafid;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** What is wrong with the servers at present, as one tag sees it. */
final class StoreHealth {
    private static final Set<String> REFUSALS = new HashSet<>(Arrays.asList(
            LeafException.INVALID_ARGUMENT, LeafException.STRICT_ORDER, LeafException.PERIODIC, LeafException.MASKED, "BAD_KEY"));
    private static final long FIRST_BACKOFF = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long WAITED_BACKOFF = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long MAX_BACKOFF = TimeUnit.SECONDS.toNanos(1);

    LeafException error; // null: nothing
    private long since;
    private long retryAt;
    private int failures;

    /** Takes in a failed call; waited: callers wait for IDs. */
    void failed(LeafException e, boolean waited) {
        long now = System.nanoTime();
        if (error == null) {
            since = now;
        }
        error = e;
        long bound = Math.min(waited ? WAITED_BACKOFF : MAX_BACKOFF, FIRST_BACKOFF << Math.min(failures++, 10));
        retryAt = now + ThreadLocalRandom.current().nextLong(bound);
    }

    void succeeded() {
        error = null;
        failures = 0;
    }

    /** Returns how long to wait before the next call. */
    long pause() {
        return error == null ? 0 : retryAt - System.nanoTime();
    }

    /** A failure that is older than a caller waits does not tell how long the servers have been failing. */
    void resume(long wait) {
        long now = System.nanoTime();
        if (error != null && now - retryAt > wait) {
            since = now;
        }
    }

    /** Returns why a caller should not even wait, or null; trying: a call was under way already. */
    LeafException verdict(long wait, boolean trying) {
        long now = System.nanoTime();
        if (error == null || !trying && now - retryAt > 0) {
            return null;
        }
        return isVerdict() || now - since >= wait ? error : null;
    }

    /** Reports whether waiting does not help. */
    boolean isVerdict() {
        return error != null && (isFinal(error) || isRefusal(error) || error.is("UNSUPPORTED"));
    }

    /** Reports whether the servers refuse the tag as such. */
    static boolean isRefusal(LeafException e) {
        return REFUSALS.contains(e.reason());
    }

    static boolean isFinal(LeafException e) {
        return e.is(LeafException.OVERFLOW) || e.is(LeafException.CLOSED);
    }
}
