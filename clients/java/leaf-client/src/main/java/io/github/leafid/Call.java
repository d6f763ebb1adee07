package io.github.leafid;

import java.time.Duration;

/** One finished call to a server. */
public final class Call {
    private final String server;
    private final String procedure;
    private final Duration took;
    private final LeafException error;

    Call(String server, String procedure, Duration took, LeafException error) {
        this.server = server;
        this.procedure = procedure;
        this.took = took;
        this.error = error;
    }

    /**
     * Returns the server.
     *
     * @return host and port
     */
    public String server() {
        return server;
    }

    /**
     * Returns the procedure.
     *
     * @return a name such as Advance or ClaimLease
     */
    public String procedure() {
        return procedure;
    }

    /**
     * Returns the duration of the call.
     *
     * @return the duration
     */
    public Duration took() {
        return took;
    }

    /**
     * Returns the reason why the call failed.
     *
     * @return the error, or null if the call succeeded
     */
    public LeafException error() {
        return error;
    }
}
