package io.github.leafid;

import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;

/**
 * The options of everything that calls servers.
 *
 * @param <B> the builder itself
 */
public abstract class ServersBuilder<B extends ServersBuilder<B>> {
    final String url;
    String token;
    Path tokenFile;
    SSLContext tls;
    Duration callTimeout = Duration.ofSeconds(5);
    Duration hedge = Duration.ofMillis(100);
    Consumer<Call> onCall;

    ServersBuilder(String url) {
        this.url = url;
    }

    ServersBuilder(ServersBuilder<?> b) {
        url = b.url;
        token = b.token;
        tokenFile = b.tokenFile;
        tls = b.tls;
        callTimeout = b.callTimeout;
        hedge = b.hedge;
        onCall = b.onCall;
    }

    abstract B self();

    /**
     * Sets the token for the servers. It may be in the URL instead, or in a file.
     *
     * @param token the token
     * @return this builder
     */
    public B token(String token) {
        this.token = token;
        return self();
    }

    /**
     * Names the file that holds the token. It may be replaced at any time.
     *
     * @param file the file
     * @return this builder
     */
    public B tokenFile(Path file) {
        this.tokenFile = file;
        return self();
    }

    /**
     * Sets the context for https URLs. The default is the one of the JVM.
     *
     * @param context the context
     * @return this builder
     */
    public B ssl(SSLContext context) {
        this.tls = context;
        return self();
    }

    /**
     * Bounds each call to a server; default 5 s.
     *
     * @param timeout the bound
     * @return this builder
     */
    public B callTimeout(Duration timeout) {
        this.callTimeout = timeout;
        return self();
    }

    /**
     * Sets the time after which a call for IDs also asks a second server; default 100 ms. Zero means
     * never.
     *
     * @param after the time
     * @return this builder
     */
    public B hedge(Duration after) {
        this.hedge = after;
        return self();
    }

    /**
     * Observes each finished call to a server, for metrics. The observer must be fast, and safe for
     * several threads.
     *
     * @param observer the observer
     * @return this builder
     */
    public B onCall(Consumer<Call> observer) {
        this.onCall = observer;
        return self();
    }

    void check() {
        if (token != null && tokenFile != null) {
            throw LeafException.invalid("a token is given twice: as such and in a file");
        }
        positive("callTimeout", callTimeout);
        if (hedge.isNegative()) {
            throw LeafException.invalid("hedge is negative");
        }
    }

    static void positive(String name, Duration d) {
        if (d.isNegative() || d.isZero()) {
            throw LeafException.invalid(name + " is not above 0");
        }
    }
}
