package io.github.leafid;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** One of the servers, and how its latest calls ended. */
final class Server {
    private static final long FIRST_BACKOFF = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long MAX_BACKOFF = TimeUnit.SECONDS.toNanos(5);

    final String base; // http://host:port
    final String host;
    volatile boolean proven; // its latest answer with an identity had that of the known store
    private int fails; // in a row
    private long retryAt;

    Server(String base) {
        this.base = base;
        this.host = base.substring(base.indexOf("://") + 3);
    }

    synchronized void answered() {
        fails = 0;
    }

    synchronized void failed() {
        long pause = Math.min(MAX_BACKOFF, FIRST_BACKOFF << Math.min(fails++, 10));
        retryAt = System.nanoTime() + pause / 2 + ThreadLocalRandom.current().nextLong(pause / 2);
    }

    /** Reports whether calls should ask it last. */
    synchronized boolean failing() {
        return fails > 0 && System.nanoTime() - retryAt < 0;
    }
}
