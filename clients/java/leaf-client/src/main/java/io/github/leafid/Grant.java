package io.github.leafid;

/** A range that a server has taken off its memory for this program. */
final class Grant {
    final long start;
    final long end;
    final long step; // of the tag
    final Server server;
    final String version; // names the grant when it is given back

    Grant(long start, long end, long step, Server server, String version) {
        this.start = start;
        this.end = end;
        this.step = step;
        this.server = server;
        this.version = version;
    }
}
