package io.github.leafid;

/** A source of unique IDs. Its methods may be called by several threads. */
public interface IdGenerator {
    /**
     * Returns the next ID.
     *
     * @return an ID that no other call has returned or will return
     * @throws LeafException if there is no ID in time
     */
    long next();

    /**
     * Returns several IDs at once.
     *
     * @param n how many
     * @return n IDs
     * @throws LeafException if there are not so many IDs in time
     */
    default long[] next(int n) {
        if (n < 1) {
            throw LeafException.invalid("n = " + n + " is below 1");
        }
        long[] ids = new long[n];
        for (int i = 0; i < n; i++) {
            ids[i] = next();
        }
        return ids;
    }
}
