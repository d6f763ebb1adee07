package io.github.leafid;

import java.util.Map;

/** The bits of a pool's IDs, from the highest on: time, worker ID, sequence. */
public final class Layout {
    private final long epoch;
    private final long tickMs;
    private final int timeBits;
    private final int workerBits;
    private final int sequenceBits;

    /**
     * Makes a layout.
     *
     * @param epoch when time 0 begins, in Unix milliseconds
     * @param tickMs the milliseconds of a unit of time
     * @param timeBits the bits of the time
     * @param workerBits the bits of the worker ID
     * @param sequenceBits the bits of the sequence
     */
    public Layout(long epoch, long tickMs, int timeBits, int workerBits, int sequenceBits) {
        if (tickMs < 1 || timeBits < 1 || workerBits < 0 || sequenceBits < 0 || timeBits + workerBits + sequenceBits > 63) {
            throw LeafException.invalid("a layout of " + timeBits + ", " + workerBits + " and " + sequenceBits + " bits with ticks of " + tickMs + " ms");
        }
        this.epoch = epoch;
        this.tickMs = tickMs;
        this.timeBits = timeBits;
        this.workerBits = workerBits;
        this.sequenceBits = sequenceBits;
    }

    static Layout read(Map<?, ?> object) {
        return new Layout(Json.number(object, "epoch"), Json.number(object, "tick_ms"), (int) Json.number(object, "time_bits"),
                (int) Json.number(object, "worker_bits"), (int) Json.number(object, "sequence_bits"));
    }

    /**
     * Returns when time 0 begins.
     *
     * @return Unix milliseconds
     */
    public long epoch() {
        return epoch;
    }

    /**
     * Returns the length of a unit of time.
     *
     * @return milliseconds
     */
    public long tickMs() {
        return tickMs;
    }

    /**
     * Returns the size of the time.
     *
     * @return bits
     */
    public int timeBits() {
        return timeBits;
    }

    /**
     * Returns the size of the worker ID.
     *
     * @return bits
     */
    public int workerBits() {
        return workerBits;
    }

    /**
     * Returns the size of the sequence.
     *
     * @return bits
     */
    public int sequenceBits() {
        return sequenceBits;
    }

    /**
     * Returns the time in an ID.
     *
     * @param id an ID of this layout
     * @return when its tick begins, in Unix milliseconds
     */
    public long time(long id) {
        return epoch + (id >>> (workerBits + sequenceBits)) * tickMs;
    }

    /**
     * Returns the worker ID in an ID.
     *
     * @param id an ID of this layout
     * @return the worker ID
     */
    public long worker(long id) {
        return id >>> sequenceBits & (1L << workerBits) - 1;
    }

    /**
     * Returns the sequence number in an ID.
     *
     * @param id an ID of this layout
     * @return the sequence number
     */
    public long sequence(long id) {
        return id & (1L << sequenceBits) - 1;
    }

    @Override
    public boolean equals(Object o) {
        return o instanceof Layout && toString().equals(o.toString());
    }

    @Override
    public int hashCode() {
        return toString().hashCode();
    }

    @Override
    public String toString() {
        return "epoch " + epoch + ", tick " + tickMs + " ms, bits " + timeBits + "/" + workerBits + "/" + sequenceBits;
    }
}
