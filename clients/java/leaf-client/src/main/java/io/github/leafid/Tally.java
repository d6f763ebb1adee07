package io.github.leafid;

import java.util.ArrayList;
import java.util.List;

/** The errors of a call that no server has answered yet. */
final class Tally {
    private final List<String> failures = new ArrayList<>();
    private LeafException worst;
    private boolean away; // one of the failures is of a server that may have the store
    private LeafException unknown; // of a server that does not know the tag
    private boolean proven; // the known store is that of such a server

    /** Reports whether a server does not know the tag: its store may be another one than the others have. */
    static boolean ignorant(LeafException e) {
        return e.is(LeafException.UNKNOWN_TAG);
    }

    void add(Server server, LeafException e) {
        if (ignorant(e)) {
            unknown = e;
            proven |= server.proven;
            return;
        }
        away |= !e.is(LeafException.FOREIGN_STORE);
        failures.add(e.getMessage());
        worst = e.status() > 0 || worst == null ? e : worst;
    }

    /** Reports whether the known store lacks the tag. */
    boolean proven() {
        return proven;
    }

    /**
     * Returns the error of the call. A tag is unknown only if a server of the known store said so, or if
     * all servers did: the tags of another store say nothing.
     */
    LeafException error() {
        if (unknown != null && (proven || !away)) {
            return unknown;
        }
        return new LeafException(worst.reason(), worst.status(), String.join("; ", failures), worst);
    }
}
