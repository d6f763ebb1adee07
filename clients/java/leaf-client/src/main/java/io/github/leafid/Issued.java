package io.github.leafid;

import java.util.Collections;
import java.util.List;

/** Numbers of a tag, and the period that they belong to. */
public final class Issued {
    private final List<IdRange> ranges;
    private final String period;

    Issued(List<IdRange> ranges, String period) {
        this.ranges = Collections.unmodifiableList(ranges);
        this.period = period;
    }

    /**
     * Returns the numbers.
     *
     * @return few ranges, which hold as many numbers as the caller wanted
     */
    public List<IdRange> ranges() {
        return ranges;
    }

    /**
     * Returns the period of the numbers.
     *
     * @return its first day, such as 2026-11-23; empty for a tag without periods
     */
    public String period() {
        return period;
    }

    @Override
    public String toString() {
        return ranges + (period.isEmpty() ? "" : " of " + period);
    }
}
