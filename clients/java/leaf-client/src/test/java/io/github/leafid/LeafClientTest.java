package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.leafid.test.IdSet;
import io.github.leafid.test.LeafServer;
import io.github.leafid.test.Proxy;
import io.github.leafid.test.Tls;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class LeafClientTest {
    private static LeafServer server;

    @BeforeAll
    static void start() throws Exception {
        server = LeafServer.start();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static String reasonOf(Runnable call) {
        return assertThrows(LeafException.class, call::run).reason();
    }

    private static TagStats stats(LeafClient client, String tag) {
        return client.stats().stream().filter(s -> s.tag().equals(tag)).findFirst().orElseThrow();
    }

    @Test
    void singleAndBatch() throws Exception {
        server.tag("batch", 100);
        IdSet seen = new IdSet();
        try (LeafClient client = LeafClient.builder(server.url()).build()) {
            for (int i = 0; i < 1000; i++) {
                seen.add(client.next("batch"));
            }
            for (int n : new int[] {1, 7, 100, 5000}) {
                long size = 0;
                for (IdRange r : client.take("batch", n)) {
                    for (long id = r.start(); id < r.end(); id++) {
                        seen.add(id);
                    }
                    size += r.size();
                }
                assertEquals(n, size);
                long[] ids = client.tag("batch").next(n);
                assertEquals(n, ids.length);
                seen.add(ids);
            }
            assertEquals(1000 + 2 * 5108, seen.size());
            assertEquals(0, seen.duplicates());
            assertEquals(seen.size(), stats(client, "batch").issued());
            assertEquals(LeafException.INVALID_ARGUMENT, reasonOf(() -> client.take("batch", 0)));
            assertEquals(LeafException.INVALID_ARGUMENT, reasonOf(() -> client.tag("batch").next(-1)));
        }
    }

    @Test
    void manyThreads() throws Exception {
        server.tag("threads", 1000);
        IdSet seen = new IdSet();
        try (LeafClient a = LeafClient.builder(server.url()).build(); LeafClient b = LeafClient.builder(server.url()).build()) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                LeafClient client = i % 2 == 0 ? a : b;
                int batch = i % 3 == 0 ? 0 : 17;
                Thread t = new Thread(() -> {
                    long[] ids = new long[200_000];
                    for (int n = 0; n < ids.length; n++) {
                        ids[n] = client.next("threads");
                    }
                    seen.add(ids);
                    for (int n = 0; n < 1000 && batch > 0; n++) {
                        seen.add(client.tag("threads").next(batch));
                    }
                });
                t.start();
                threads.add(t);
            }
            for (Thread t : threads) {
                t.join();
            }
        }
        assertEquals(8 * 200_000 + 5 * 17_000, seen.size());
        assertEquals(0, seen.duplicates());
    }

    @Test
    void closeGivesTheStockBack() throws Exception {
        server.tag("back", 1000);
        long last = 0;
        for (int i = 0; i < 3; i++) {
            LeafClient client = LeafClient.builder(server.url()).build();
            long id = client.next("back");
            assertEquals(last + 1, id);
            last = client.next("back");
            client.close();
            client.close();
            assertTrue(stats(client, "back").returned() > 0);
            assertEquals(0, stats(client, "back").stock());
            assertEquals(LeafException.CLOSED, reasonOf(() -> client.next("back")));
            assertEquals(LeafException.CLOSED, reasonOf(() -> client.next("other")));
        }
    }

    @Test
    void unknownTag() throws Exception {
        try (LeafClient client = LeafClient.builder(server.url()).build()) {
            assertEquals(LeafException.UNKNOWN_TAG, reasonOf(() -> client.next("later")));
            assertEquals(LeafException.UNKNOWN_TAG, reasonOf(() -> client.take("later", 5)));
            server.tag("later", 10);
            long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            long id = 0;
            while (id == 0 && System.nanoTime() < end) { // the server, too, refuses it for a while
                try {
                    id = client.next("later");
                } catch (LeafException e) {
                    assertEquals(LeafException.UNKNOWN_TAG, e.reason());
                    Thread.sleep(20);
                }
            }
            assertTrue(id > 0);
        }
    }

    @Test
    void budgets() throws Exception {
        server.tag("budget", 100);
        try (LeafClient client = LeafClient.builder(server.url()).maxStock(5000).build()) {
            for (int i = 0; i < 50_000; i++) {
                client.next("budget");
                if (i % 1000 == 0) {
                    TagStats s = stats(client, "budget");
                    assertTrue(s.stock() <= 5000, "stock " + s.stock());
                    assertTrue(s.granted() <= 2 * (i + 1) + 200, i + 1 + " issued, " + s.granted() + " granted");
                }
            }
            assertEquals(LeafException.INVALID_ARGUMENT, reasonOf(() -> client.take("budget", 5001)));
        }
    }

    /** IDs go on without a server while the stock lasts, and afterwards once it is back. */
    @Test
    void serverKilledAndRestarted() throws Exception {
        try (LeafServer own = LeafServer.start()) {
            own.tag("outage", 1000);
            IdSet seen = new IdSet();
            try (LeafClient client = LeafClient.builder(own.url()).callTimeout(Duration.ofSeconds(1)).build()) {
                for (int round = 0; round < 3; round++) {
                    for (int i = 0; i < 20_000; i++) {
                        seen.add(client.next("outage"));
                    }
                    awaitStock(client, "outage", 10_000);
                    own.kill();
                    for (int i = 0; i < 10_000; i++) {
                        seen.add(client.next("outage")); // no call fails
                    }
                    own.restart();
                }
                own.kill();
                assertEquals(LeafException.EXHAUSTED, reasonOf(() -> {
                    for (;;) {
                        seen.add(client.next("outage"));
                    }
                }));
                long begun = System.nanoTime();
                assertEquals(LeafException.EXHAUSTED, reasonOf(() -> client.next("outage")));
                assertTrue(System.nanoTime() - begun < Duration.ofSeconds(3).toNanos());
                own.restart();
                for (int i = 0; i < 20_000; i++) {
                    seen.add(awaitId(client, "outage"));
                }
            }
            assertEquals(0, seen.duplicates());
        }
    }

    private static void awaitStock(LeafClient client, String tag, long ids) throws InterruptedException {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (stats(client, tag).stock() < ids) {
            assertTrue(System.nanoTime() < end, "stock " + stats(client, tag).stock());
            Thread.sleep(2);
        }
    }

    /** Returns an ID of a server that is just back, which calls notice within a second. */
    private static long awaitId(LeafClient client, String tag) {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        for (;;) {
            try {
                return client.next(tag);
            } catch (LeafException e) {
                if (System.nanoTime() > end || !e.is(LeafException.EXHAUSTED)) {
                    throw e;
                }
            }
        }
    }

    /** Answers that are lost after the server has granted cost IDs, and give none twice. */
    @Test
    void answersLost() throws Exception {
        server.tag("lost", 100);
        IdSet seen = new IdSet();
        try (Proxy proxy = new Proxy(server.port())) {
            proxy.lose(0.5);
            try (LeafClient client = LeafClient.builder(proxy.url()).wait(Duration.ofSeconds(20)).build();
                    LeafClient other = LeafClient.builder(server.url()).build()) {
                for (int i = 0; i < 30_000; i++) {
                    seen.add(client.next("lost"), other.next("lost"));
                }
            }
            assertTrue(proxy.lost() > 0);
        }
        assertEquals(0, seen.duplicates());
    }

    /** A slow server is not waited for where another one answers. */
    @Test
    void slowServer() throws Exception {
        server.tag("slow", 10);
        try (Proxy slow = new Proxy(server.port())) {
            slow.delay(4000);
            Map<String, AtomicInteger> calls = new ConcurrentHashMap<>();
            try (LeafClient client = LeafClient.builder(slow.url() + "," + server.url().substring(7)).maxStock(10)
                    .onCall(c -> calls.computeIfAbsent(c.server(), s -> new AtomicInteger()).incrementAndGet()).build()) {
                long begun = System.nanoTime();
                for (int i = 0; i < 200; i++) {
                    client.next("slow");
                }
                assertTrue(System.nanoTime() - begun < Duration.ofSeconds(30).toNanos());
                assertTrue(calls.get(server.url().substring(7)).get() >= 10, calls.toString());
            }
            try (LeafClient client = LeafClient.builder(slow.url()).callTimeout(Duration.ofMillis(300)).build()) {
                assertEquals(LeafException.EXHAUSTED, reasonOf(() -> client.next("slow")));
            }
        }
    }

    /** A server that does not exist is passed over. */
    @Test
    void oneServerGone() throws Exception {
        server.tag("gone", 10);
        int free;
        try (ServerSocket s = new ServerSocket(0)) {
            free = s.getLocalPort();
        }
        for (int i = 0; i < 8; i++) { // either one is asked first
            try (LeafClient client = LeafClient.builder("http://127.0.0.1:" + free + ",127.0.0.1:" + server.port()).build()) {
                client.tag("gone").next(100);
            }
        }
    }

    /** Another store may have handed out the same IDs. */
    @Test
    void anotherStore() throws Exception {
        server.tag("store", 10);
        try (LeafServer other = LeafServer.start()) {
            other.tag("store", 10);
            try (LeafClient client = LeafClient.builder(server.url() + "," + other.url().substring(7)).maxStock(10).build()) {
                IdSet seen = new IdSet();
                for (int i = 0; i < 300; i++) {
                    seen.add(client.next("store"));
                }
                assertEquals(0, seen.duplicates());
            }
        }
    }

    @Test
    void ordered() {
        try (LeafClient client = LeafClient.builder(server.url()).build()) {
            IdGenerator ids = client.ordered("snowflake", "leaf");
            long before = 0;
            for (int i = 0; i < 50; i++) {
                long id = ids.next();
                assertTrue(id > before);
                before = id;
            }
            assertEquals(5000, ids.next(5000).length);
            assertEquals(LeafException.INVALID_ARGUMENT, reasonOf(() -> ids.next(0)));
            assertEquals(LeafException.UNKNOWN_TAG, reasonOf(() -> client.ordered("segment", "nope").next()));
        }
    }

    @Test
    void interrupted() throws Exception {
        try (ServerSocket silent = new ServerSocket(0)) {
            try (LeafClient client = LeafClient.builder("http://127.0.0.1:" + silent.getLocalPort()).wait(Duration.ofMinutes(1)).build()) {
                AtomicBoolean marked = new AtomicBoolean();
                List<String> reasons = new ArrayList<>();
                Thread t = new Thread(() -> {
                    reasons.add(reasonOf(() -> client.next("x")));
                    marked.set(Thread.currentThread().isInterrupted());
                });
                t.start();
                silent.accept();
                t.interrupt();
                t.join();
                assertEquals(List.of(LeafException.INTERRUPTED), reasons);
                assertTrue(marked.get());
            }
        }
    }

    @Test
    void tokenAndTls(@TempDir Path folder) throws Exception {
        Tls tls = new Tls(folder);
        Path tokens = folder.resolve("tokens.yaml");
        Path secret = folder.resolve("token");
        String entry = LeafServer.run("", "token", "new", "--name", "shop", "--take", "shop", "--secret-file", secret.toString());
        Files.writeString(tokens, "tokens:\n" + entry.substring(entry.indexOf("- name")));
        Path config = Files.writeString(folder.resolve("leaf.yaml"), "tokens_file: " + tokens + "\ntls:\n  cert: " + tls.certificate + "\n  key: " + tls.key + "\n");
        config.toFile().setWritable(true, true);
        try (LeafServer own = LeafServer.start("--config", config.toString())) {
            String token = Files.readString(secret);
            try (LeafClient client = LeafClient.builder(own.url()).tokenFile(secret).ssl(tls.context()).wait(Duration.ofSeconds(20)).build()) {
                assertEquals(LeafException.UNKNOWN_TAG, reasonOf(() -> client.next("shop"))); // it may ask
            }
            try (LeafClient client = LeafClient.builder(own.url()).token(token).ssl(tls.context()).build()) {
                assertEquals(LeafException.FORBIDDEN, reasonOf(() -> client.next("other")));
            }
            try (LeafClient client = LeafClient.builder(own.url()).token(token).build()) { // the JVM does not trust it
                assertEquals(LeafException.EXHAUSTED, reasonOf(() -> client.next("shop")));
            }
            try (LeafClient client = LeafClient.builder(own.url()).ssl(tls.context()).build()) {
                LeafException e = assertThrows(LeafException.class, () -> client.next("shop"));
                assertEquals(LeafException.UNAUTHENTICATED, e.reason());
                assertEquals(401, e.status());
            }
        }
    }

    @Test
    void badOptions() {
        for (LeafClient.Builder b : List.of(LeafClient.builder("http://h").maxStock(0), LeafClient.builder("http://h").wait(Duration.ZERO),
                LeafClient.builder("http://x@h").token("y"), LeafClient.builder("http://h").hedge(Duration.ofMillis(-1)), LeafClient.builder("h"),
                LeafClient.builder("http://h").token("y").tokenFile(Path.of("z")))) {
            assertEquals(LeafException.INVALID_ARGUMENT, reasonOf(b::build));
        }
    }
}
