package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.leafid.test.IdSet;
import io.github.leafid.test.LeafServer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class LeafSnowflakeTest {
    private static LeafServer server;

    @BeforeAll
    static void start() throws Exception {
        server = LeafServer.start();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static LeafSnowflake open(String pool, int ttl) {
        return LeafSnowflake.builder(server.url(), pool).ttl(Duration.ofSeconds(ttl)).build();
    }

    @Test
    void manyGenerators() throws Exception {
        String pool = server.pool("many", 3, "1m");
        IdSet seen = new IdSet();
        for (int round = 0; round < 3; round++) {
            List<LeafSnowflake> generators = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                if (i < 4) {
                    generators.add(open(pool, 30));
                }
                LeafSnowflake g = generators.get(i % 4);
                threads.add(new Thread(() -> seen.add(g.next(100_000))));
            }
            for (Thread t : threads) {
                t.start();
            }
            for (Thread t : threads) {
                t.join();
            }
            for (LeafSnowflake g : generators) {
                g.close();
                assertEquals(LeafException.CLOSED, assertThrows(LeafException.class, g::next).reason());
            }
        }
        assertEquals(2_400_000, seen.size());
        assertEquals(0, seen.duplicates());
    }

    /** Threads take IDs while the generator is closed and its successor has the same worker ID. */
    @Test
    void closeUnderLoad() throws Exception {
        String pool = server.poolOfOne("close");
        IdSet seen = new IdSet();
        for (int round = 0; round < 5; round++) {
            LeafSnowflake g = open(pool, 30);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Thread t = new Thread(() -> {
                    long[] ids = new long[1 << 20];
                    int n = 0;
                    try {
                        while (n < ids.length) {
                            ids[n] = g.next();
                            n++;
                        }
                    } catch (LeafException e) {
                        assertEquals(LeafException.CLOSED, e.reason());
                    }
                    seen.add(java.util.Arrays.copyOf(ids, n));
                });
                t.start();
                threads.add(t);
            }
            seen.add(g.next(1000));
            g.close();
            for (Thread t : threads) {
                t.join();
            }
        }
        assertTrue(seen.size() > 20_000);
        assertEquals(0, seen.duplicates());
    }

    @Test
    void idsTellTheirTime() throws Exception {
        try (LeafSnowflake g = open(server.pool("time", 4, "1m"), 30)) {
            long odd = 0;
            for (int i = 0; i < 200; i++) {
                long id = g.next();
                Layout l = g.layout();
                assertTrue(Math.abs(l.time(id) - g.lease().now()) < 5000);
                assertEquals(g.lease().worker(), l.worker(id));
                odd += l.sequence(id) & 1;
                Thread.sleep(1);
            }
            assertTrue(odd > 40 && odd < 160, odd + " of 200 are odd"); // tables are chosen by the remainder
        }
    }

    /** The registry forgets the lease: another one is claimed before the limit, and no call fails. */
    @Test
    void leaseLost() throws Exception {
        IdSet seen = new IdSet();
        try (LeafSnowflake g = open(server.pool("lost", 2, "1m"), 3)) {
            seen.add(g.next(100));
            loseLease(g, seen);
            seen.add(g.next(1000));
        }
        assertEquals(0, seen.duplicates());
    }

    /** Has the registry forget the lease, and takes IDs until the generator has another one. */
    private static void loseLease(LeafSnowflake g, IdSet seen) throws Exception {
        WorkerLease first = g.lease();
        HttpURLConnection c = (HttpURLConnection) new URL(server.url() + "/v1/workers/leases/" + first.id() + "?used=" + (first.limit() - 1)).openConnection();
        c.setRequestMethod("DELETE");
        assertEquals(204, c.getResponseCode());
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (g.lease() == first && System.nanoTime() < end) {
            seen.add(g.next());
        }
        assertNotEquals(first.id(), g.lease().id());
    }

    /** Each generator of one builder replaces its own leases, with the options that it began with. */
    @Test
    void twoOfOneBuilder() throws Exception {
        IdSet seen = new IdSet();
        LeafSnowflake.Builder b = LeafSnowflake.builder(server.url(), server.pool("builder", 3, "1m")).ttl(Duration.ofSeconds(3)).wait(Duration.ofSeconds(10));
        try (LeafSnowflake g1 = b.build(); LeafSnowflake g2 = b.build()) {
            b.ttl(Duration.ofSeconds(50)).wait(Duration.ofNanos(1));
            WorkerLease other = g2.lease();
            for (int lost = 0; lost < 2; lost++) {
                loseLease(g1, seen);
                assertTrue(g1.lease().limit() - g1.lease().now() < 10_000, g1.lease().toString());
            }
            assertEquals(other, g2.lease());
            seen.add(g1.next(), g2.next());
        }
        assertEquals(0, seen.duplicates());
    }

    /** No thread starts for longer than the lease lasts: calls fail with the reason, and succeed again afterwards. */
    @Test
    void threadsMissing() throws Exception {
        IdSet seen = new IdSet();
        try (LeafSnowflake g = open(server.pool("threads", 2, "1m"), 2)) {
            ThreadFactory factory = g.servers.threads.getThreadFactory();
            g.servers.threads.setThreadFactory(task -> {
                throw new OutOfMemoryError("unable to create native thread");
            });
            g.servers.threads.setKeepAliveTime(0, TimeUnit.SECONDS); // ends the idle thread
            LeafException failed = null;
            while (failed == null) {
                try {
                    seen.add(g.next());
                    Thread.sleep(1);
                } catch (LeafException e) {
                    failed = e;
                }
            }
            assertEquals(LeafException.NO_WORKER_ID, failed.reason());
            assertTrue(failed.getMessage().contains("unable to create native thread"), failed.getMessage());
            g.servers.threads.setThreadFactory(factory);
            long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            for (int more = 0; more < 1000;) {
                try {
                    seen.add(g.next());
                    more++;
                } catch (LeafException e) {
                    assertTrue(System.nanoTime() < end, e.toString());
                }
            }
        }
        assertEquals(0, seen.duplicates());
    }

    /** IDs go on without the server up to the limit, and again once it is back. */
    @Test
    void serverKilledAndRestarted() throws Exception {
        try (LeafServer own = LeafServer.start()) {
            IdSet seen = new IdSet();
            String pool = own.pool("killed", 2, "1m");
            try (LeafSnowflake g = LeafSnowflake.builder(own.url(), pool).ttl(Duration.ofSeconds(3)).callTimeout(Duration.ofSeconds(1))
                    .wait(Duration.ofMillis(50)).build()) {
                seen.add(g.next(100));
                own.kill();
                long limit = g.lease().limit();
                LeafException failed = null;
                while (failed == null) {
                    try {
                        seen.add(g.next());
                        Thread.sleep(1);
                    } catch (LeafException e) {
                        failed = e;
                    }
                }
                assertEquals(LeafException.NO_WORKER_ID, failed.reason());
                assertTrue(g.lease().now() >= limit - 5, "gave up " + (limit - g.lease().now()) + " ms before the limit");
                own.restart();
                long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
                for (int more = 0; more < 1000;) {
                    try {
                        seen.add(g.next());
                        more++;
                    } catch (LeafException e) {
                        assertTrue(System.nanoTime() < end, e.toString());
                    }
                }
            }
            assertEquals(0, seen.duplicates());
        }
    }

    /** A program that was stopped for longer than its lease makes no ID of it, and goes on with another one. */
    @Test
    void pausedProgram() throws Exception {
        String pool = server.poolOfOne("paused");
        IdSet seen = new IdSet();
        Process paused = child(pool, "2");
        BufferedReader out = new BufferedReader(new InputStreamReader(paused.getInputStream()));
        try {
            for (int i = 0; i < 1000; i++) {
                seen.add(Long.parseLong(out.readLine()));
            }
            signal(paused, "STOP");
            LeafSnowflake other = open(pool, 30); // waits until the lease has ended
            seen.add(other.next(2000));
            signal(paused, "CONT");
            long refused = 0;
            for (String line = out.readLine(); refused == 0; line = out.readLine()) {
                if (line.equals(LeafException.NO_WORKER_ID)) {
                    refused++;
                } else {
                    seen.add(Long.parseLong(line));
                }
                seen.add(other.next());
            }
            other.close();
            for (int more = 0; more < 1000;) { // it has a lease again
                String line = out.readLine();
                if (!line.equals(LeafException.NO_WORKER_ID)) {
                    seen.add(Long.parseLong(line));
                    more++;
                }
            }
        } finally {
            paused.destroyForcibly().waitFor();
        }
        assertEquals(0, seen.duplicates());
    }

    private static Process child(String pool, String ttl) throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        return new ProcessBuilder(java, "-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", System.getProperty("java.class.path"), Child.class.getName(),
                server.url(), pool, ttl).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private static void signal(Process p, String name) throws Exception {
        assertEquals(0, new ProcessBuilder("kill", "-" + name, Long.toString(p.pid())).start().waitFor());
    }

    /** Prints IDs, and why there was none. */
    static final class Child {
        public static void main(String[] args) {
            java.util.logging.LogManager.getLogManager().reset();
            LeafSnowflake g = LeafSnowflake.builder(args[0], args[1]).ttl(Duration.ofSeconds(Long.parseLong(args[2]))).wait(Duration.ofMillis(20)).build();
            while (!System.out.checkError()) {
                try {
                    System.out.println(g.next());
                } catch (LeafException e) {
                    System.out.println(e.reason());
                }
            }
        }
    }
}
