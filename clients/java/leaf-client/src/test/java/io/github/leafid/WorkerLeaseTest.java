package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.leafid.test.IdSet;
import io.github.leafid.test.LeafServer;
import io.github.leafid.test.Proxy;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class WorkerLeaseTest {
    private static LeafServer server;

    @BeforeAll
    static void start() throws Exception {
        server = LeafServer.start();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static WorkerLease claim(String pool) {
        return WorkerLease.builder(server.url(), pool).claim();
    }

    /** Claims a lease of a worker ID that is free in a moment. */
    private static WorkerLease claimSoon(String pool) throws Exception {
        for (int tries = 0;; tries++) {
            try {
                return claim(pool);
            } catch (LeafException e) {
                if (!e.is(LeafException.NO_FREE_WORKER_ID) || tries == 300) {
                    throw e;
                }
                Thread.sleep(50);
            }
        }
    }

    private static String reasonOf(Runnable call) {
        return assertThrows(LeafException.class, call::run).reason();
    }

    /** Makes a bare request, as a program without this library might. */
    private static int http(String method, String path) throws Exception {
        HttpURLConnection c = (HttpURLConnection) new URL(server.url() + "/v1/workers/leases" + path).openConnection();
        c.setRequestMethod(method);
        return c.getResponseCode();
    }

    @Test
    void claimsAndReleases() throws Exception {
        String pool = server.pool("lease", 1, "1m");
        WorkerLease a = WorkerLease.builder(server.url(), pool).ttl(Duration.ofSeconds(30)).holder("a").claim();
        WorkerLease b = claim(pool);
        assertNotEquals(a.worker(), b.worker());
        assertEquals(12, a.layout().sequenceBits());
        assertTrue(a.isValid() && a.limit() - a.now() <= 30_000 && a.limit() - a.now() > 25_000, a.toString());
        assertFalse(a.toString().contains(a.id()));
        assertEquals(LeafException.NO_FREE_WORKER_ID, reasonOf(() -> claim(pool)));
        a.release();
        a.release(); // again
        a.close();
        assertFalse(a.isValid());
        WorkerLease c = claim(pool);
        assertEquals(a.worker(), c.worker());
        b.close();
        c.close();
        assertEquals("UNKNOWN_POOL", reasonOf(() -> claim("typo")));
        assertEquals(404, assertThrows(LeafException.class, () -> claim("typo")).status());
    }

    @Test
    void useIsWithinFloorAndLimit() throws Exception {
        WorkerLease a = claim(server.poolOfOne("within"));
        assertFalse(a.use(a.floor() - 1));
        assertFalse(a.use(a.limit()));
        assertFalse(a.use(a.limit() + 3_600_000)); // the clock of this machine is off
        assertTrue(a.use(a.now()));
        long used = a.now() + 500;
        assertTrue(a.use(used));
        assertTrue(a.use(a.floor()));
        a.seal();
        assertFalse(a.use(used));
        a.release();
        WorkerLease b = claimSoon("within"); // the latest time is known
        assertEquals(used + 1, b.floor());
        assertFalse(b.use(used));
        b.close();
    }

    @Test
    void renewsItself() throws Exception {
        BlockingQueue<LeafException> lost = new LinkedBlockingQueue<>();
        WorkerLease a = WorkerLease.builder(server.url(), server.pool("renews", 1, "1m")).ttl(Duration.ofSeconds(1)).onLost(lost::add).claim();
        long first = a.limit();
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (a.limit() < first + 2000 && System.nanoTime() < end) {
            Thread.sleep(10);
        }
        assertTrue(a.limit() >= first + 2000);
        assertTrue(lost.isEmpty());
        a.close();
    }

    /** Without a server the program is told before the limit, once. */
    @Test
    void tellsInTime() throws Exception {
        try (Proxy proxy = new Proxy(server.port())) {
            BlockingQueue<LeafException> lost = new LinkedBlockingQueue<>();
            WorkerLease a = WorkerLease.builder(proxy.url(), server.pool("in-time", 1, "1m")).ttl(Duration.ofSeconds(6)).callTimeout(Duration.ofSeconds(2))
                    .onLost(lost::add).claim();
            proxy.close();
            assertEquals(LeafException.UNAVAILABLE, lost.poll(30, TimeUnit.SECONDS).reason());
            assertTrue(a.now() < a.limit(), "the limit came before the call");
            assertTrue(a.use(a.limit() - 1));
            assertEquals(LeafException.UNAVAILABLE, reasonOf(a::release));
            a.close();
            assertEquals(null, lost.poll(1, TimeUnit.SECONDS));
        }
    }

    /** Two programs with one lease: the renewal of one does no harm, and its release is noticed by the other. */
    @Test
    void twoProgramsWithOneLease() throws Exception {
        BlockingQueue<LeafException> lost = new LinkedBlockingQueue<>();
        WorkerLease a = WorkerLease.builder(server.url(), server.poolOfOne("two")).ttl(Duration.ofSeconds(2)).onLost(lost::add).claim();
        long used = a.now();
        assertTrue(a.use(used));
        assertEquals(200, http("POST", "/" + a.id()));
        assertTrue(a.use(a.now()));
        long limit = a.limit();
        assertEquals(204, http("DELETE", "/" + a.id() + "?used=" + (limit - 1)));
        assertEquals(409, http("DELETE", "/" + a.id() + "?used=" + (limit - 1))); // a release sent twice
        assertEquals(LeafException.LEASE_LOST, lost.poll(30, TimeUnit.SECONDS).reason());
        assertTrue(a.now() < limit, "noticed after the limit");
        WorkerLease b = claimSoon("two");
        assertTrue(b.floor() >= limit);
        a.release();
        b.close();
    }

    /** The log tells of a callback that fails. */
    @Test
    void callbackFails() throws Exception {
        BlockingQueue<Throwable> logged = new LinkedBlockingQueue<>();
        Handler handler = new StreamHandler() {
            @Override
            public void publish(LogRecord r) {
                if (r.getThrown() != null) {
                    logged.add(r.getThrown());
                }
            }
        };
        Logger log = Logger.getLogger(WorkerLease.class.getName());
        log.addHandler(handler);
        try {
            WorkerLease a = WorkerLease.builder(server.url(), server.pool("callback", 1, "1m")).ttl(Duration.ofSeconds(1)).onLost(e -> {
                throw new AssertionError("of the callback");
            }).claim();
            assertEquals(204, http("DELETE", "/" + a.id() + "?used=none"));
            assertEquals("of the callback", logged.poll(30, TimeUnit.SECONDS).getMessage());
            a.close();
        } finally {
            log.removeHandler(handler);
        }
    }

    /** A claim that no thread renews gives the worker ID back. */
    @Test
    void timerDoesNotStart() throws Exception {
        String pool = server.poolOfOne("timer");
        WorkerLease.Builder b = WorkerLease.builder(server.url(), pool);
        Servers servers = new Servers(b);
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1, task -> {
            throw new OutOfMemoryError("unable to create native thread");
        });
        assertThrows(OutOfMemoryError.class, () -> b.claim(servers, timer, () -> { }));
        servers.close();
        claimSoon(pool).close();
    }

    /** A release with a time beyond the lease is refused, and one of another lease as well. */
    @Test
    void badReleases() throws Exception {
        WorkerLease a = claim(server.pool("bad", 1, "1m"));
        assertEquals(400, http("DELETE", "/" + a.id() + "?used=" + a.limit()));
        assertEquals(400, http("DELETE", "/" + a.id()));
        assertEquals(409, http("DELETE", "/" + a.id().replaceFirst("-.", a.id().contains("-0") ? "-1" : "-0") + "?used=none"));
        assertTrue(a.use(a.now()));
        a.release();
    }

    /** The answer to a claim is lost: it costs a worker ID until its limit, and no more. */
    @Test
    void answersLost() throws Exception {
        String pool = server.pool("answers", 5, "1m");
        try (Proxy proxy = new Proxy(server.port())) {
            proxy.lose(0.5);
            List<WorkerLease> leases = new ArrayList<>();
            while (leases.size() < 5) {
                try {
                    leases.add(WorkerLease.builder(proxy.url(), pool).ttl(Duration.ofSeconds(3)).claim());
                } catch (LeafException e) {
                    assertTrue(e.is(LeafException.UNAVAILABLE) || e.is(LeafException.NO_FREE_WORKER_ID), e.toString());
                }
            }
            assertEquals(5, leases.stream().map(WorkerLease::worker).distinct().count());
            for (WorkerLease l : leases) {
                l.close();
            }
        }
    }

    /** The registry is restored from a backup that does not know the lease: the lease lasts, the others wait. */
    @Test
    void restoredRegistry() throws Exception {
        try (LeafServer own = LeafServer.start()) {
            String pool = own.pool("restored", 1, "4s");
            own.stop();
            Path backup = Files.createTempDirectory("leaf-backup");
            copy(own.data(), backup);
            own.restart();
            IdSet seen = new IdSet();
            try (LeafSnowflake a = LeafSnowflake.builder(own.url(), pool).ttl(Duration.ofSeconds(4)).wait(Duration.ofSeconds(20)).build()) {
                String first = a.lease().id();
                seen.add(a.next(1000));
                own.stop();
                long stopped = System.nanoTime();
                copy(backup, own.data());
                while (System.nanoTime() - stopped < Duration.ofSeconds(4).toNanos()) { // as the documentation says: the longest ttl
                    try {
                        seen.add(a.next());
                    } catch (LeafException e) {
                        assertEquals(LeafException.NO_WORKER_ID, e.reason());
                    }
                }
                own.restart();
                try (LeafSnowflake b = LeafSnowflake.builder(own.url(), pool).ttl(Duration.ofSeconds(4)).build()) {
                    for (int i = 0; i < 2000; i++) {
                        seen.add(a.next(), b.next());
                    }
                }
                assertNotEquals(first, a.lease().id());
            }
            assertEquals(0, seen.duplicates());
        }
    }

    private static void copy(Path from, Path to) throws Exception {
        if (Files.exists(to)) {
            new ProcessBuilder("rm", "-r", to.toString()).start().waitFor();
        }
        assertEquals(0, new ProcessBuilder("cp", "-a", from.toString(), to.toString()).start().waitFor());
    }
}
