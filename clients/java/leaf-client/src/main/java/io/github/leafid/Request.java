package io.github.leafid;

import java.util.Map;

/** A request that any of the servers can answer. */
final class Request<T> {
    final String procedure; // for people and metrics
    final String method;
    final String path;
    final String body; // null: none
    final Reader<T> reader;

    /** Reads an answer. An IllegalArgumentException means that it is not usable. */
    interface Reader<T> {
        T read(Server server, Map<String, Object> answer);
    }

    Request(String procedure, String method, String path, String body, Reader<T> reader) {
        this.procedure = procedure;
        this.method = method;
        this.path = path;
        this.body = body;
        this.reader = reader;
    }

    /** A call of LeafService. */
    static <T> Request<T> connect(String procedure, Map<String, ?> fields, Reader<T> reader) {
        return new Request<>(procedure, "POST", "/leaf.v1.LeafService/" + procedure, Json.write(fields), reader);
    }
}
