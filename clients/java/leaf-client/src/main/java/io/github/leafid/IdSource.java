package io.github.leafid;

/** Where a stock gets its IDs. */
interface IdSource {
    /** Takes a range of up to n IDs; 0 means the step of the tag. */
    Grant advance(String tag, long n);

    /** Gives the IDs from start to the end of the last grant back. */
    void giveBack(String tag, Grant last, long start);
}
