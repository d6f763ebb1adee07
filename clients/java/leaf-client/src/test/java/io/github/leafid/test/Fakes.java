package io.github.leafid.test;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** Servers that answer as a test says. */
public final class Fakes implements AutoCloseable {
    private final List<HttpServer> servers = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<Integer> asked = new ArrayList<>(); // guarded by this, as answers
    private Answer[] answers;

    /** An answer to everything. */
    public static final class Answer {
        /** No answer. */
        public static final Answer FROZEN = new Answer(0, "");

        private final int status;
        private final Supplier<String> body;

        public Answer(int status, String body) {
            this.status = status;
            this.body = () -> body;
        }

        /** A success with a text that changes. */
        public Answer(Supplier<String> body) {
            this.status = 200;
            this.body = body;
        }

        @Override
        public String toString() {
            return status + " " + body.get();
        }
    }

    public Fakes(int n) throws IOException {
        for (int i = 0; i < n; i++) {
            int number = i;
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            server.setExecutor(threads);
            server.createContext("/", exchange -> handle(number, exchange));
            server.start();
            servers.add(server);
        }
    }

    private void handle(int number, HttpExchange exchange) throws IOException {
        exchange.getRequestBody().readAllBytes();
        Answer answer;
        synchronized (this) {
            asked.add(number);
            answer = answers[number];
        }
        if (answer == Answer.FROZEN) {
            return;
        }
        byte[] bytes = answer.body.get().getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(answer.status, bytes.length == 0 ? -1 : bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    public String url() {
        List<String> hosts = new ArrayList<>();
        servers.forEach(s -> hosts.add("127.0.0.1:" + s.getAddress().getPort()));
        return "http://" + String.join(",", hosts);
    }

    /** Sets the answer of each server, and forgets which ones were asked. */
    public synchronized void answer(Answer... each) {
        answers = each;
        asked.clear();
    }

    /** The numbers of the servers that were asked, from 0 on. */
    public synchronized List<Integer> asked() {
        return new ArrayList<>(asked);
    }

    @Override
    public void close() {
        servers.forEach(s -> s.stop(0));
        threads.shutdownNow();
    }
}
