package io.github.leafid;

/** A call failed. {@link #reason()} is for programs, the message is for people. */
public class LeafException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The IDs in memory are used up, and no server has delivered in time. */
    public static final String EXHAUSTED = "EXHAUSTED";
    /** The tag does not exist. */
    public static final String UNKNOWN_TAG = "UNKNOWN_TAG";
    /** An argument or an option is not allowed. */
    public static final String INVALID_ARGUMENT = "INVALID_ARGUMENT";
    /** The client, the generator or the lease is closed. */
    public static final String CLOSED = "CLOSED";
    /** No server has given a usable answer. */
    public static final String UNAVAILABLE = "UNAVAILABLE";
    /** A server of another store has answered. Its IDs may be in use. */
    public static final String FOREIGN_STORE = "FOREIGN_STORE";
    /** The thread was interrupted while it waited. It is still marked as interrupted. */
    public static final String INTERRUPTED = "INTERRUPTED";
    /** The counter or the layout is at its end, for good. */
    public static final String OVERFLOW = "OVERFLOW";
    /** The tag has strict order, so nobody has a stock of it: make a call for each ID, by LeafClient.ordered. */
    public static final String STRICT_ORDER = "STRICT_ORDER";
    /** The numbers of the tag start again with each period: make a call for them, by LeafClient.issue. */
    public static final String PERIODIC = "PERIODIC";
    /** The servers hide the numbers of the tag: make a call for each one, by LeafClient.ordered or issue. */
    public static final String MASKED = "MASKED";
    /** The server wants a valid token. */
    public static final String UNAUTHENTICATED = "UNAUTHENTICATED";
    /** The token lacks the right. */
    public static final String FORBIDDEN = "FORBIDDEN";
    /** The process holds no lease of a worker ID at present. */
    public static final String NO_WORKER_ID = "NO_WORKER_ID";
    /** The lease is over for the registry. */
    public static final String LEASE_LOST = "LEASE_LOST";
    /** All worker IDs of the pool are leased. */
    public static final String NO_FREE_WORKER_ID = "NO_FREE_WORKER_ID";

    private final String reason;
    private final int status;

    /**
     * Makes an exception.
     *
     * @param reason what programs branch on
     * @param status the HTTP status of the answer, or 0
     * @param message what people read
     * @param cause what led to it, or null
     */
    public LeafException(String reason, int status, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
        this.status = status;
    }

    LeafException(String reason, String message) {
        this(reason, 0, message, null);
    }

    /**
     * Returns the reason: one of the constants of this class, or another one of the server.
     *
     * @return the reason, which never changes from release to release
     */
    public String reason() {
        return reason;
    }

    /**
     * Returns the HTTP status of the server's answer.
     *
     * @return the status, or 0 if no server has answered
     */
    public int status() {
        return status;
    }

    boolean is(String other) {
        return reason.equals(other);
    }

    /** Returns e, or an exception that reports it. */
    static LeafException of(Throwable e) {
        return e instanceof LeafException ? (LeafException) e : new LeafException(UNAVAILABLE, 0, e.toString(), e);
    }

    static LeafException invalid(String message) {
        return new LeafException(INVALID_ARGUMENT, message);
    }

    static LeafException interrupted() {
        Thread.currentThread().interrupt();
        return new LeafException(INTERRUPTED, "interrupted");
    }
}
