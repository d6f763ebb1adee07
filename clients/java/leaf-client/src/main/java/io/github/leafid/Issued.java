package io.github.leafid;

import java.util.Collections;
import java.util.List;

/** Numbers of a tag or their texts, and the period that they belong to. */
public final class Issued {
    private final List<IdRange> ranges;
    private final List<String> texts;
    private final String period;

    Issued(List<IdRange> ranges, List<String> texts, String period) {
        this.ranges = Collections.unmodifiableList(ranges);
        this.texts = Collections.unmodifiableList(texts);
        this.period = period;
    }

    /**
     * Returns the numbers.
     *
     * @return few ranges, which hold as many numbers as the caller wanted; empty if there are texts
     */
    public List<IdRange> ranges() {
        return ranges;
    }

    /**
     * Returns the texts that the tag's form makes of the numbers.
     *
     * @return one text for each number if the caller wanted texts
     */
    public List<String> texts() {
        return texts;
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
        return (texts.isEmpty() ? ranges : texts) + (period.isEmpty() ? "" : " of " + period);
    }
}
