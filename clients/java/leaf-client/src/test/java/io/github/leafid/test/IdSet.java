package io.github.leafid.test;

import java.util.Arrays;
import java.util.Collection;

/** Collects IDs of many threads and finds duplicates. */
public final class IdSet {
    private long[] ids = new long[1 << 16];
    private int size;

    public synchronized void add(long... more) {
        if (size + more.length > ids.length) {
            ids = Arrays.copyOf(ids, Math.max(2 * ids.length, size + more.length));
        }
        System.arraycopy(more, 0, ids, size, more.length);
        size += more.length;
    }

    public void add(Collection<Long> more) {
        add(more.stream().mapToLong(Long::longValue).toArray());
    }

    public synchronized int size() {
        return size;
    }

    /** Returns how many IDs came a second time. */
    public synchronized int duplicates() {
        long[] sorted = Arrays.copyOf(ids, size);
        Arrays.parallelSort(sorted);
        int n = 0;
        for (int i = 1; i < sorted.length; i++) {
            n += sorted[i] == sorted[i - 1] ? 1 : 0;
        }
        return n;
    }
}
