package io.github.leafid;

import java.util.List;

/** The IDs from {@link #start()} up to, not including, {@link #end()}. */
public final class IdRange {
    private final long start;
    private final long end;

    IdRange(long start, long end) {
        this.start = start;
        this.end = end;
    }

    /**
     * Returns the first ID.
     *
     * @return the first ID
     */
    public long start() {
        return start;
    }

    /**
     * Returns the end of the range.
     *
     * @return one past the last ID
     */
    public long end() {
        return end;
    }

    /**
     * Returns the number of IDs.
     *
     * @return how many IDs the range has
     */
    public long size() {
        return end - start;
    }

    @Override
    public String toString() {
        return "[" + start + ", " + end + ")";
    }

    static long[] flatten(List<IdRange> ranges, int n) {
        long[] ids = new long[n];
        int i = 0;
        for (IdRange range : ranges) {
            for (long id = range.start; id < range.end; id++) {
                ids[i++] = id;
            }
        }
        return ids;
    }
}
