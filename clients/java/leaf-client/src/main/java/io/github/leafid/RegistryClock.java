package io.github.leafid;

import java.util.concurrent.TimeUnit;

/**
 * The registry's clock, as far as the answers tell it. Between them the JVM's monotonic clock counts, so
 * this machine's date does not matter.
 */
final class RegistryClock {
    private final long millis;
    private final long sent;
    private final long received;

    /** An answer with the registry's time, between two moments of System.nanoTime. */
    RegistryClock(long millis, long sent, long received) {
        this.millis = millis;
        this.sent = sent;
        this.received = received;
    }

    /** Returns the time that has certainly come. */
    long earliest() {
        return millis + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - received);
    }

    /** Returns the time that has come at most. */
    long latest() {
        return millis + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sent) + 1;
    }
}
