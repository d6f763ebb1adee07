package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.leafid.test.Fakes;
import io.github.leafid.test.Fakes.Answer;
import java.io.IOException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a client chooses among servers, with servers that answer as a test says. */
@Timeout(120)
class ServersTest {
    private static final Answer PLAIN = take("");
    private static final Answer MINE = take("mine");
    private static final Answer OTHER = take("other");
    private static final Answer UNKNOWN = new Answer(404, "{\"reason\":\"UNKNOWN_TAG\",\"detail\":\"the tag is unknown\"}");
    private static final Answer AWAY = new Answer(503, "{\"reason\":\"STORE_UNAVAILABLE\",\"detail\":\"the store is away\"}");

    private static Answer take(String store) {
        return new Answer(200, "{\"ranges\":[{\"start\":\"1\",\"end\":\"2\"}],\"store\":\"" + store + "\"}");
    }

    private static LeafClient inTurn(Fakes servers) {
        return LeafClient.builder(servers.url()).hedge(Duration.ZERO).build();
    }

    private static String reasonOf(Runnable call) {
        return assertThrows(LeafException.class, call::run).reason();
    }

    /**
     * A tag that one server does not know may be another one's, unless that server has the known store or
     * all say so. Only a server that knows the tag is asked first from then on.
     */
    @Test
    void tagOfAnotherServer() throws Exception {
        otherServer("of none", UNKNOWN, MINE, "", 1);
        otherServer("of none", UNKNOWN, UNKNOWN, LeafException.UNKNOWN_TAG, 0);
        otherServer("of none", UNKNOWN, AWAY, "STORE_UNAVAILABLE", 0);
        otherServer("of the first", UNKNOWN, AWAY, LeafException.UNKNOWN_TAG, 0);
        otherServer("of the first", UNKNOWN, Answer.FROZEN, LeafException.UNKNOWN_TAG, 0);
        otherServer("of none", AWAY, UNKNOWN, "STORE_UNAVAILABLE", 0);
        otherServer("of none", UNKNOWN, OTHER, LeafException.UNKNOWN_TAG, 0);
        otherServer("of none", OTHER, UNKNOWN, LeafException.UNKNOWN_TAG, 0);
        otherServer("", UNKNOWN, MINE, "", 1);
    }

    /** Two servers give these answers, and the known store is that of the first one, of none, or there is none. */
    private static void otherServer(String known, Answer first, Answer second, String want, int active) throws Exception {
        String name = known + ": " + first + ", " + second;
        try (Fakes servers = new Fakes(2); LeafClient client = inTurn(servers)) {
            IdGenerator ids = client.ordered("segment", "order");
            servers.answer(known.isEmpty() ? PLAIN : MINE, AWAY);
            ids.next(); // so the first server is active
            if (known.equals("of none")) { // the latest answers of both are of another store than the known one
                servers.answer(OTHER, OTHER);
                assertEquals(LeafException.FOREIGN_STORE, reasonOf(ids::next), name);
            }
            Thread.sleep(250); // the failures are forgotten
            servers.answer(first, second);
            long begun = System.nanoTime();
            if (want.isEmpty()) {
                ids.next();
            } else {
                assertEquals(want, reasonOf(ids::next), name);
            }
            assertTrue(System.nanoTime() - begun < Duration.ofSeconds(4).toNanos(), name);
            assertEquals(List.of(0, 1), servers.asked(), name);
            Thread.sleep(250);
            servers.answer(PLAIN, PLAIN);
            ids.next();
            assertEquals(List.of(active), servers.asked(), name);
        }
    }

    /** A server of another store cannot end a tag while the one that has it is away. */
    @Test
    void stockAndServerOfAnotherStore() throws IOException {
        AtomicInteger next = new AtomicInteger();
        Answer grants = new Answer(() -> {
            int id = next.incrementAndGet();
            return "{\"range\":{\"start\":\"" + id + "\",\"end\":\"" + (id + 1) + "\"},\"step\":\"1\",\"store\":\"mine\"}";
        });
        try (Fakes servers = new Fakes(2); LeafClient client = LeafClient.builder(servers.url()).wait(Duration.ofSeconds(2)).maxStock(10).build()) {
            servers.answer(UNKNOWN, grants);
            client.next("order");
            servers.answer(UNKNOWN, AWAY);
            assertEquals(LeafException.EXHAUSTED, reasonOf(() -> {
                for (;;) {
                    client.next("order");
                }
            }));
            servers.answer(UNKNOWN, grants);
            long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
            for (long id = 0; id == 0;) {
                try {
                    id = client.next("order");
                } catch (LeafException e) {
                    assertEquals(LeafException.EXHAUSTED, e.reason());
                    assertTrue(System.nanoTime() < end);
                }
            }
        }
    }

    /** A proxy's page says nothing about the servers behind it, whatever its status is. */
    @Test
    void pagesOfProxies() throws IOException {
        for (int status : new int[] {302, 404, 405, 413, 429}) {
            for (String body : List.of("<html><body>not here</body></html>", "", "[1]", "{\"error\":\"x\"}", "{\"code\":\"not_found\"}",
                    "{\"reason\":5}", "{\"reason\":\"NotFound\"}")) {
                Answer page = new Answer(status, body);
                try (Fakes servers = new Fakes(2); LeafClient client = inTurn(servers)) {
                    IdGenerator ids = client.ordered("segment", "order");
                    servers.answer(PLAIN, AWAY);
                    ids.next(); // so the first server is active
                    servers.answer(page, PLAIN);
                    ids.next();
                    ids.next();
                    assertEquals(List.of(0, 1, 1), servers.asked(), page.toString());
                    servers.answer(page, page);
                    LeafException e = assertThrows(LeafException.class, ids::next);
                    assertEquals(LeafException.UNAVAILABLE, e.reason());
                    assertEquals(status, e.status());
                }
            }
        }
    }

    private static OutOfMemoryError noThread() {
        return new OutOfMemoryError("unable to create native thread");
    }

    /** A second server cannot be asked for want of a thread: the answer of the first one counts. */
    @Test
    void hedgeDoesNotStart() throws Exception {
        Answer slow = new Answer(() -> {
            sleep(1000);
            return "{}";
        });
        try (Fakes fakes = new Fakes(2)) {
            fakes.answer(slow, slow);
            Servers servers = new Servers(LeafClient.builder(fakes.url()).hedge(Duration.ofMillis(50)));
            ThreadFactory factory = servers.threads.getThreadFactory();
            AtomicInteger threads = new AtomicInteger();
            servers.threads.setThreadFactory(task -> {
                if (threads.incrementAndGet() > 1) {
                    throw noThread();
                }
                return factory.newThread(task);
            });
            Request<String> request = Request.connect("Take", new LinkedHashMap<>(), (server, answer) -> server.host);
            assertTrue(servers.repeat(request, true).contains("127.0.0.1"));
            assertEquals(2, threads.get());
            assertEquals(1, fakes.asked().size());
            servers.threads.setKeepAliveTime(0, TimeUnit.SECONDS); // ends the idle thread
            Thread.sleep(100);
            LeafException e = assertThrows(LeafException.class, () -> servers.repeat(request, true));
            assertEquals(LeafException.UNAVAILABLE, e.reason());
            assertTrue(e.getMessage().contains("unable to create native thread"), e.getMessage());
            servers.close();
        }
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Stock stock(IdSource source, ExecutorService threads) {
        StockOptions options = new StockOptions(LeafClient.builder("http://h").wait(Duration.ofSeconds(2)));
        return new Stock("order", options, source, threads, () -> { });
    }

    /** Gives ranges of 10 IDs. */
    private static IdSource source(Runnable before) {
        AtomicLong last = new AtomicLong(1);
        return new IdSource() {
            @Override
            public Grant advance(String tag, long n) {
                before.run();
                long start = last.getAndAdd(10);
                return new Grant(start, start + 10, 10, null, "");
            }

            @Override
            public void giveBack(String tag, Grant last, long start) {
                // nothing
            }
        };
    }

    /** Refilling goes on after a thread was missing for a while. */
    @Test
    void refillDoesNotStart() {
        AtomicInteger missing = new AtomicInteger(3);
        ThreadPoolExecutor threads = Servers.daemons("test");
        ThreadFactory factory = threads.getThreadFactory();
        threads.setKeepAliveTime(1, TimeUnit.MICROSECONDS);
        threads.setThreadFactory(task -> {
            if (missing.getAndDecrement() > 0) {
                throw noThread();
            }
            return factory.newThread(task);
        });
        Stock stock = stock(source(() -> { }), threads);
        assertEquals(1, stock.next()); // the caller has tried again
        missing.set(Integer.MAX_VALUE);
        LeafException e = assertThrows(LeafException.class, () -> {
            for (;;) {
                stock.next();
            }
        });
        assertEquals(LeafException.EXHAUSTED, e.reason());
        assertTrue(e.getMessage().contains("unable to create native thread"), e.getMessage());
        missing.set(0);
        long before = stock.stats().issued();
        assertEquals(before + 1, awaitId(stock));
        threads.shutdownNow();
    }

    private static long awaitId(Stock stock) {
        long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        for (;;) {
            try {
                return stock.next();
            } catch (LeafException e) {
                assertTrue(System.nanoTime() < end, e.toString());
            }
        }
    }

    /** Refilling goes on after an Error, as of a lack of memory. */
    @Test
    void refillWithError() {
        AtomicInteger errors = new AtomicInteger(2);
        ThreadPoolExecutor threads = Servers.daemons("test");
        Stock stock = stock(source(() -> {
            if (errors.getAndDecrement() > 0) {
                throw new OutOfMemoryError("Java heap space");
            }
        }), threads);
        assertEquals(1, stock.next());
        assertEquals(2, stock.stats().failures());
        threads.shutdownNow();
    }

    /** An observer that fails loses no answer. */
    @Test
    void observerFails() throws Exception {
        BlockingQueue<String> logged = new LinkedBlockingQueue<>();
        Handler handler = new StreamHandler() {
            @Override
            public void publish(LogRecord r) {
                logged.add(r.getMessage() + ": " + r.getThrown().getMessage());
            }
        };
        Logger log = Logger.getLogger(Servers.class.getName());
        log.addHandler(handler);
        try (Fakes servers = new Fakes(1); LeafClient client = LeafClient.builder(servers.url()).callTimeout(Duration.ofSeconds(10)).onCall(c -> {
            throw new AssertionError("of the observer");
        }).build()) {
            IdGenerator ids = client.ordered("segment", "order");
            servers.answer(PLAIN);
            assertEquals(1, ids.next());
            servers.answer(AWAY);
            assertEquals("STORE_UNAVAILABLE", reasonOf(ids::next));
            for (int i = 0; i < 2; i++) {
                assertEquals("onCall failed: of the observer", logged.poll(30, TimeUnit.SECONDS));
            }
        } finally {
            log.removeHandler(handler);
        }
    }
}
