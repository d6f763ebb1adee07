package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The vectors of api/vectors, which the server and all clients run. */
@Timeout(120)
class VectorsTest {
    private static Map<String, Object> vectors(String name) throws IOException {
        return Json.object(Files.readString(Path.of("../../../api/vectors", name + ".json")));
    }

    private static List<Map<?, ?>> maps(Map<?, ?> object, String name) {
        List<Map<?, ?>> out = new ArrayList<>();
        for (Object o : Json.list(object, name)) {
            out.add((Map<?, ?>) o);
        }
        return out;
    }

    /** Servers that give one answer to everything. */
    private static final class Answering implements AutoCloseable {
        final List<String> asked = new CopyOnWriteArrayList<>();
        private final List<HttpServer> servers = new ArrayList<>();

        Answering(int n, int status, String body) throws IOException {
            for (int i = 0; i < n; i++) {
                HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
                server.createContext("/", exchange -> {
                    exchange.getRequestBody().readAllBytes();
                    asked.add(exchange.getRequestMethod() + " " + exchange.getRequestURI());
                    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                    exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
                    exchange.getResponseBody().write(bytes);
                    exchange.close();
                });
                server.start();
                servers.add(server);
            }
        }

        String url() {
            List<String> hosts = new ArrayList<>();
            servers.forEach(s -> hosts.add("127.0.0.1:" + s.getAddress().getPort()));
            return "http://" + String.join(",", hosts);
        }

        @Override
        public void close() {
            servers.forEach(s -> s.stop(0));
        }
    }

    @Test
    void layouts() throws IOException {
        for (Map<?, ?> v : maps(vectors("layouts"), "layouts")) {
            Layout layout = Layout.read(v);
            for (Map<?, ?> id : maps(v, "ids")) {
                long n = Json.number(id, "id");
                assertEquals(Json.number(id, "time"), layout.time(n), id.toString());
                assertEquals(Json.number(id, "worker"), layout.worker(n), id.toString());
                assertEquals(Json.number(id, "sequence"), layout.sequence(n), id.toString());
            }
        }
        for (Map<?, ?> v : maps(vectors("layouts"), "invalid")) {
            assertThrows(LeafException.class, () -> Layout.read(v), v.toString());
        }
    }

    @Test
    void serverFromBeforePeriodsAndForms() throws IOException {
        try (Answering servers = new Answering(2, 200, "{\"ranges\":[{\"start\":\"1\",\"end\":\"2\"}]}");
                LeafClient client = LeafClient.builder(servers.url()).build()) {
            LeafException e = assertThrows(LeafException.class, () -> client.issue("order", "2026-11-23", 1));
            assertEquals("UNSUPPORTED", e.reason());
            assertEquals("UNSUPPORTED", assertThrows(LeafException.class, () -> client.issueTexts("order", "", 1)).reason());
            assertEquals("", client.issue("order", "", 1).period());
        }
    }

    @Test
    void leases() throws IOException {
        for (Map<?, ?> v : maps(vectors("leases"), "leases")) {
            String body = String.format("{\"lease\":\"secret\",\"pool\":\"p\",\"worker\":%d,\"layout\":%s,\"floor\":%d,\"limit\":%d,\"now\":%d,\"renew_at\":%d}",
                    Json.number(v, "worker"), write(Json.map(v, "layout")), Json.number(v, "floor"), Json.number(v, "limit"), Json.number(v, "floor"),
                    Json.number(v, "floor") + 600_000);
            try (Answering server = new Answering(1, 200, body)) {
                WorkerLease lease = WorkerLease.builder(server.url(), "p").claim();
                for (Object id : Json.list(v, "outside")) {
                    assertFalse(covers(lease, (String) id), v.get("name") + ": " + id);
                }
                for (Object id : Json.list(v, "inside")) {
                    assertTrue(covers(lease, (String) id), v.get("name") + ": " + id);
                }
                lease.close();
                lease.close();
                String used = v.containsKey("used_after_last") ? v.get("used_after_last").toString() : "none";
                assertEquals(2, server.asked.size());
                assertTrue(server.asked.get(1).startsWith("DELETE ") && server.asked.get(1).endsWith("?used=" + used), server.asked.toString());
            }
        }
    }

    private static String write(Map<?, ?> layout) {
        List<String> fields = new ArrayList<>();
        layout.forEach((name, value) -> fields.add("\"" + name + "\":" + value));
        return "{" + String.join(",", fields) + "}";
    }

    private static boolean covers(WorkerLease lease, String text) {
        long id = Long.parseLong(text);
        long begin = lease.layout().time(id);
        return lease.layout().worker(id) == lease.worker() && lease.use(begin, begin + lease.layout().tickMs() - 1);
    }

    @Test
    void errors() throws IOException {
        Map<String, Object> file = vectors("errors");
        for (Map<?, ?> e : maps(file, "errors")) {
            refused(Json.string(e, "reason"), Json.map(e, "http"), VectorsTest::claim);
            refused(Json.string(e, "reason"), Json.map(e, "connect"), VectorsTest::take);
        }
        for (Map<?, ?> e : maps(file, "strange")) {
            refused(Json.string(e, "reason"), e, VectorsTest::claim);
            refused(Json.string(e, "reason"), e, VectorsTest::take);
        }
    }

    private static void claim(String url) {
        WorkerLease.builder(url, "p").claim().close();
    }

    private static void take(String url) {
        try (LeafClient client = LeafClient.builder(url).hedge(Duration.ZERO).build()) {
            client.ordered("segment", "order").next();
        }
    }

    /** Two servers give this answer: the call must fail so, after it has asked both or one. Of an unknown tag it asks both. */
    private static void refused(String reason, Map<?, ?> answer, java.util.function.Consumer<String> call) throws IOException {
        Object body = answer.get("body");
        String text = body instanceof String ? (String) body : json(body);
        try (Answering servers = new Answering(2, (int) Json.number(answer, "status"), text)) {
            LeafException e = assertThrows(LeafException.class, () -> call.accept(servers.url()), text);
            assertEquals(reason, e.reason(), text);
            boolean another = Boolean.TRUE.equals(answer.get("another_server")) || reason.equals(LeafException.UNKNOWN_TAG);
            assertEquals(another ? 2 : 1, servers.asked.size(), text);
        }
    }

    private static String json(Object value) {
        if (value instanceof Map) {
            List<String> fields = new ArrayList<>();
            ((Map<?, ?>) value).forEach((name, field) -> fields.add("\"" + name + "\":" + json(field)));
            return "{" + String.join(",", fields) + "}";
        }
        if (value instanceof List) {
            List<String> items = new ArrayList<>();
            ((List<?>) value).forEach(item -> items.add(json(item)));
            return "[" + String.join(",", items) + "]";
        }
        return value instanceof String ? "\"" + value + "\"" : String.valueOf(value);
    }
}
