package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class SizingTest {
    /** In each line: stock, missing, step, issued, recent, maxStock, and how many to ask for. */
    @Test
    void size() {
        long[][] cases = {
            {0, 0, 100, 0, 0, 1000, 100}, // a step
            {95, 0, 100, 5, 5, 1000, 0}, // nine tenths are left
            {89, 0, 100, 11, 11, 1000, 100}, // else at least a step
            {0, 0, 100, 5000, 5000, 10_000, 5000}, // the recent use
            {0, 0, 100, 5000, 50_000, 100_000, 5000}, // at most what was issued
            {0, 0, 100, 5000, 5000, 1000, 1000}, // the loss budget
            {10, 300, 100, 90, 90, 1000, 100}, // callers need more than is due: step by step
            {250, 300, 100, 100, 90, 1000, 0}, // never more than issued and two steps
        };
        for (long[] c : cases) {
            assertEquals(c[6], Sizing.size(c[0], c[1], c[2], c[3], c[4], c[5]), java.util.Arrays.toString(c));
        }
    }

    @Test
    void recentUse() {
        RecentUse use = new RecentUse(1000, 0);
        assertEquals(500, use.observe(500, 500));
        assertEquals(1000, use.observe(1000, 1000));
        assertEquals(1000, use.observe(1500, 1500)); // from 500 on
        assertEquals(0, use.observe(9000, 1500));
    }
}
