package io.github.leafid;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Pattern;
import javax.net.ssl.SSLSocketFactory;

/**
 * Calls one of several servers with one store. It asks the one first that answered last and knew the
 * tag, and those with a recent failure last.
 */
final class Servers {
    private static final Logger LOG = Logger.getLogger(Servers.class.getName());
    /** How long the others have to answer after a server of the known store lacked the tag. */
    private static final long TURN = TimeUnit.SECONDS.toNanos(2);
    private static final Pattern REASON = Pattern.compile("[A-Z_]+"); // other programs have some such as NotFound
    private static final String[] CHOICES = {"detail", "message"}; // of an error's text

    private final List<Server> servers = new ArrayList<>();
    private final Token token;
    private final SSLSocketFactory tls;
    private final long timeout; // nanoseconds
    private final long hedge; // nanoseconds; 0: never
    private final Consumer<Call> onCall;
    final ThreadPoolExecutor threads;
    private volatile int active;
    private volatile boolean closed;

    Servers(ServersBuilder<?> options) {
        options.check();
        ServerUrl url = new ServerUrl(options.url);
        if (url.token != null && (options.token != null || options.tokenFile != null)) {
            throw LeafException.invalid("a token is given twice: in the URL and as an option");
        }
        for (String server : url.servers) {
            servers.add(new Server(server));
        }
        token = new Token(url.token != null ? url.token : options.token, options.tokenFile);
        tls = options.tls == null ? null : options.tls.getSocketFactory();
        timeout = options.callTimeout.toNanos();
        hedge = options.hedge.toNanos();
        onCall = options.onCall;
        threads = daemons("leaf-call");
        active = ThreadLocalRandom.current().nextInt(servers.size()); // so that not all programs begin with the first
    }

    static ThreadPoolExecutor daemons(String name) {
        AtomicInteger n = new AtomicInteger();
        return new ThreadPoolExecutor(0, Integer.MAX_VALUE, 30, TimeUnit.SECONDS, new SynchronousQueue<Runnable>(), task -> {
            Thread t = new Thread(task, name + "-" + n.incrementAndGet());
            t.setDaemon(true);
            return t;
        });
    }

    void close() {
        closed = true;
        threads.shutdownNow();
    }

    /** Makes a call that may be repeated at another server, and at two at once if hedged. */
    <T> T repeat(Request<T> request, boolean hedged) {
        return new Attempt<>(request, order(), hedged && hedge > 0).run();
    }

    /** Makes a call that must not be repeated, to one server. */
    <T> T once(Request<T> request, Server server) {
        List<Server> one = new ArrayList<>();
        one.add(server);
        return new Attempt<>(request, one, false).run();
    }

    private List<Server> order() {
        List<Server> all = new ArrayList<>();
        List<Server> failing = new ArrayList<>();
        for (int i = 0; i < servers.size(); i++) {
            Server s = servers.get((active + i) % servers.size());
            (s.failing() ? failing : all).add(s);
        }
        all.addAll(failing);
        return all;
    }

    /** How a call to one server ended. */
    private static final class Outcome<T> {
        final Server server;
        T result;
        LeafException error; // null: it succeeded
        boolean faulty; // another server should be asked

        Outcome(Server server) {
            this.server = server;
        }

        Outcome<T> fail(LeafException e, boolean faulty) {
            this.error = e;
            this.faulty = faulty;
            return this;
        }
    }

    /** One call to several servers, by the thread that needs the answer. */
    private final class Attempt<T> {
        private final Request<T> request;
        private final List<Server> order;
        private final boolean hedged;
        private final BlockingQueue<Outcome<T>> outcomes = new LinkedBlockingQueue<>();
        private final List<Exchange> exchanges = new ArrayList<>();
        private final List<Long> deadlines = new ArrayList<>(); // one for each; null: it has ended
        private final Tally tally = new Tally();
        private long settled; // when the call ends because the known store lacks the tag
        private int running;

        Attempt(Request<T> request, List<Server> order, boolean hedged) {
            this.request = request;
            this.order = order;
            this.hedged = hedged;
        }

        T run() {
            try {
                ask();
                for (;;) {
                    Outcome<T> o = await();
                    if (o == null) {
                        if (isSettled()) {
                            throw tally.error();
                        }
                        ask(); // the answer takes long
                        continue;
                    }
                    running--;
                    boolean ignorant = o.error != null && Tally.ignorant(o.error);
                    if (!o.faulty && !ignorant) {
                        active = servers.indexOf(o.server);
                        o.server.answered();
                        if (o.error != null) {
                            throw o.error;
                        }
                        return o.result;
                    }
                    if (ignorant) {
                        o.server.answered();
                    } else {
                        o.server.failed();
                    }
                    boolean before = tally.proven();
                    tally.add(o.server, o.error);
                    if (tally.proven() && !before) {
                        settled = System.nanoTime() + TURN;
                    }
                    if (exchanges.size() < order.size()) {
                        ask();
                    } else if (running == 0) {
                        throw tally.error();
                    }
                }
            } catch (InterruptedException e) {
                throw LeafException.interrupted();
            } finally {
                abort();
            }
        }

        /** Ends the exchanges that are still under way; the connections of the others are kept. */
        private void abort() {
            for (int i = 0; i < exchanges.size(); i++) {
                synchronized (deadlines) {
                    if (deadlines.set(i, null) == null) {
                        continue;
                    }
                }
                exchanges.get(i).abort();
            }
        }

        private void ask() {
            if (closed) {
                throw new LeafException(LeafException.CLOSED, "the client is closed");
            }
            int i = exchanges.size();
            Server server = order.get(i);
            Exchange exchange = new Exchange(request.method, server.base + request.path, request.body);
            exchanges.add(exchange);
            deadlines.add(System.nanoTime() + timeout);
            running++;
            try {
                threads.execute(() -> {
                    long begun = System.nanoTime();
                    Outcome<T> o = exchange(server, exchange, request);
                    observe(server, System.nanoTime() - begun, o.error);
                    end(i, o);
                });
            } catch (Throwable e) { // an Error too: memory for a thread may be missing for a while
                end(i, new Outcome<T>(server).fail(unavailable(server, "was not asked: " + e, e), true));
            }
        }

        private void end(int i, Outcome<T> o) {
            synchronized (deadlines) {
                if (deadlines.set(i, null) != null) {
                    outcomes.add(o);
                }
            }
        }

        private boolean isSettled() {
            return tally.proven() && System.nanoTime() - settled >= 0;
        }

        /** Returns the next outcome, or null when another server should be asked meanwhile or the call is settled. */
        private Outcome<T> await() throws InterruptedException {
            boolean more = hedged && exchanges.size() < order.size();
            long hedgeAt = System.nanoTime() + hedge;
            for (;;) {
                long now = System.nanoTime();
                long wait = more ? hedgeAt - now : timeout;
                wait = tally.proven() ? Math.min(wait, settled - now) : wait;
                for (int i = 0; i < exchanges.size(); i++) {
                    wait = Math.min(wait, expire(i, now));
                }
                Outcome<T> o = outcomes.poll(Math.max(0, wait), TimeUnit.NANOSECONDS);
                if (o != null) {
                    return o;
                }
                if (isSettled() || more && System.nanoTime() - hedgeAt >= 0) {
                    return null;
                }
            }
        }

        /** Returns the time left for an exchange, and ends it if that is over. */
        private long expire(int i, long now) {
            synchronized (deadlines) {
                Long deadline = deadlines.get(i);
                if (deadline == null || deadline - now > 0) {
                    return deadline == null ? timeout : deadline - now;
                }
                deadlines.set(i, null);
            }
            exchanges.get(i).abort();
            String text = "leaf server " + order.get(i).host + " has not answered within " + Duration.ofNanos(timeout);
            outcomes.add(new Outcome<T>(order.get(i)).fail(new LeafException(LeafException.UNAVAILABLE, text), true));
            return 0;
        }

        private void observe(Server server, long took, LeafException error) {
            if (onCall == null) {
                return;
            }
            try {
                onCall.accept(new Call(server.host, request.procedure, Duration.ofNanos(took), error));
            } catch (Throwable failure) { // the answer must not be lost by it
                LOG.log(Level.SEVERE, "onCall failed", failure);
            }
        }
    }

    private <T> Outcome<T> exchange(Server server, Exchange exchange, Request<T> request) {
        Outcome<T> o = new Outcome<>(server);
        try {
            exchange.run(token.get(), tls, (int) Math.min(Integer.MAX_VALUE, TimeUnit.NANOSECONDS.toMillis(timeout) + 1));
            if (exchange.status >= 300) {
                return explain(o, exchange);
            }
            o.result = request.reader.read(server, exchange.answer.isEmpty() ? null : Json.object(exchange.answer));
            return o;
        } catch (LeafException e) {
            return o.fail(e, true);
        } catch (IOException e) {
            return o.fail(unavailable(server, "is unavailable: " + e, e), true);
        } catch (RuntimeException e) { // such as that of a malformed answer
            return o.fail(unavailable(server, "gave no usable answer: " + e, e), true);
        }
    }

    private static LeafException unavailable(Server server, String text, Throwable cause) {
        return new LeafException(LeafException.UNAVAILABLE, 0, "leaf server " + server.host + " " + text, cause);
    }

    /** Reads an error, of the HTTP API or of Connect. One without a reason is not Leaf's: a proxy's page, say. */
    private static <T> Outcome<T> explain(Outcome<T> o, Exchange exchange) {
        String reason = "";
        String text = "";
        try {
            Map<String, Object> problem = Json.object(exchange.answer);
            for (String name : CHOICES) {
                text = text.isEmpty() ? Json.string(problem, name) : text;
            }
            reason = Json.string(problem, "reason");
            reason = REASON.matcher(reason).matches() ? reason : "";
            for (Object detail : Json.list(problem, "details")) {
                if (detail instanceof Map && Json.string((Map<?, ?>) detail, "type").equals("google.rpc.ErrorInfo")) {
                    reason = firstField(Json.string((Map<?, ?>) detail, "value"));
                }
            }
        } catch (RuntimeException e) {
            text = ""; // a proxy's page, say
        }
        int status = exchange.status;
        boolean faulty = reason.isEmpty() || status >= 500 || status == 401 || status == 403;
        if (reason.isEmpty()) {
            reason = status == 401 ? LeafException.UNAUTHENTICATED : status == 403 ? LeafException.FORBIDDEN : LeafException.UNAVAILABLE;
        }
        text = text.isEmpty() ? "HTTP status " + status : text;
        return o.fail(new LeafException(reason, status, "leaf server " + o.server.host + ": " + text, null), faulty);
    }

    /** Returns the first field of a google.rpc.ErrorInfo, which is the reason. */
    private static String firstField(String base64) {
        byte[] message = Base64.getDecoder().decode(base64);
        StringBuilder out = new StringBuilder();
        if (message.length > 1 && message[0] == 0x0a) {
            for (int i = 2; i < 2 + message[1]; i++) {
                out.append((char) message[i]);
            }
        }
        return out.toString();
    }
}
