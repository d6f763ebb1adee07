package io.github.leafid;

/** What a client did with the IDs of a tag. */
public final class TagStats {
    private final String tag;
    private final long stock;
    private final long issued;
    private final long granted;
    private final long returned;
    private final long failures;

    TagStats(String tag, long stock, long issued, long granted, long returned, long failures) {
        this.tag = tag;
        this.stock = stock;
        this.issued = issued;
        this.granted = granted;
        this.returned = returned;
        this.failures = failures;
    }

    /**
     * Returns the tag.
     *
     * @return its name
     */
    public String tag() {
        return tag;
    }

    /**
     * Returns the number of IDs in memory.
     *
     * @return what a crash would cost now
     */
    public long stock() {
        return stock;
    }

    /**
     * Returns the number of issued IDs.
     *
     * @return how many IDs callers got
     */
    public long issued() {
        return issued;
    }

    /**
     * Returns the number of received IDs.
     *
     * @return how many IDs servers granted
     */
    public long granted() {
        return granted;
    }

    /**
     * Returns the number of IDs that went back at the end.
     *
     * @return how many IDs the servers took back
     */
    public long returned() {
        return returned;
    }

    /**
     * Returns the number of failed refills.
     *
     * @return how often no server granted IDs
     */
    public long failures() {
        return failures;
    }
}
