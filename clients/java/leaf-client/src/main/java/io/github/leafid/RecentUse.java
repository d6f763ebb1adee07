package io.github.leafid;

import java.util.ArrayDeque;
import java.util.Iterator;

/**
 * Counts the IDs issued within the last outage budget. It has samples of their number, the oldest
 * first. All but the first are within the budget, and it counts from the first.
 */
final class RecentUse {
    private static final int SAMPLES = 20;

    private final long budget; // nanoseconds
    private final ArrayDeque<long[]> samples = new ArrayDeque<>(); // time, issued

    RecentUse(long budget, long now) {
        this.budget = budget;
        samples.add(new long[] {now, 0});
    }

    /** Takes in how many IDs have been issued by now, and returns how many of them are recent. */
    long observe(long now, long issued) {
        if (now - samples.getLast()[0] >= budget / SAMPLES) {
            samples.addLast(new long[] {now, issued});
        }
        while (samples.size() > 1 && second()[0] - (now - budget) <= 0) {
            samples.removeFirst();
        }
        return issued - samples.getFirst()[1];
    }

    private long[] second() {
        Iterator<long[]> i = samples.iterator();
        i.next();
        return i.next();
    }
}
