package io.github.leafid.mybatisplus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.baomidou.mybatisplus.core.incrementer.DefaultIdentifierGenerator;
import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import com.baomidou.mybatisplus.core.toolkit.IdWorker;
import io.github.leafid.LeafSnowflake;
import io.github.leafid.test.IdSet;
import io.github.leafid.test.LeafServer;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/**
 * Five processes with MyBatis-Plus are replaced one after the other, again and again, each time by one
 * with a fresh address. -Dleaf.rolling=200 sets how often; -Dleaf.comparison=true counts the duplicates
 * of MyBatis-Plus's own default instead, each process in a network and a PID namespace of its own.
 */
class RollingUpdateTest {
    private static final int PROCESSES = 5;
    private static final int UPDATES = Integer.getInteger("leaf.rolling", 3);
    private static final boolean COMPARISON = Boolean.getBoolean("leaf.comparison");

    private final IdSet seen = new IdSet();
    private int started;
    private int killed;

    @Test
    void noDuplicateAndNoShortage() throws Exception {
        try (LeafServer server = LeafServer.start()) {
            server.pool("orders", 5, "1m"); // 32 worker IDs
            Instance[] running = new Instance[PROCESSES];
            try {
                for (int update = 0; update <= UPDATES; update++) {
                    for (int i = 0; i < PROCESSES; i++) {
                        Instance next = new Instance(server.url());
                        next.awaitFirst();
                        if (running[i] != null) {
                            running[i].end(started % 25 == 0);
                        }
                        running[i] = next;
                    }
                }
            } finally {
                for (Instance i : running) {
                    if (i != null) {
                        i.end(false);
                    }
                }
            }
            System.out.println((COMPARISON ? "MyBatis-Plus's default: " : "leased worker IDs: ") + UPDATES + " updates, " + started + " processes, " + killed
                    + " of them killed, " + seen.size() + " IDs, " + seen.duplicates() + " duplicates");
            assertTrue(seen.size() > started);
            if (!COMPARISON) {
                assertEquals(0, seen.duplicates());
            }
        }
    }

    /** A process, with a fresh address. */
    private final class Instance {
        private final Process process;
        private final CountDownLatch first = new CountDownLatch(1);
        private final Thread reader = new Thread(this::read);

        Instance(String url) throws IOException {
            started++;
            String address = "10." + started / 62500 + "." + started / 250 % 250 + "." + (started % 250 + 1);
            List<String> command = new ArrayList<>();
            if (COMPARISON) {
                byte[] mac = new byte[2];
                ThreadLocalRandom.current().nextBytes(mac);
                String setUp = String.format("ip link add eth0 address 02:42:0a:00:%02x:%02x type veth peer name peer0 && ip link set peer0 up && "
                        + "ip addr add %s/8 dev eth0 && ip link set eth0 up && exec \"$@\"", mac[0], mac[1], address);
                command.addAll(List.of("unshare", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", setUp, "sh"));
            }
            command.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx48m",
                    "-cp", System.getProperty("java.class.path"), Program.class.getName(), COMPARISON ? "" : url, address));
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            reader.start();
        }

        private void read() {
            try (DataInputStream in = new DataInputStream(process.getInputStream())) {
                for (;;) {
                    seen.add(in.readLong());
                    first.countDown();
                }
            } catch (IOException e) {
                // it has ended
            }
        }

        void awaitFirst() throws InterruptedException {
            assertTrue(first.await(120, TimeUnit.SECONDS), "no ID: a shortage of worker IDs?");
        }

        void end(boolean kill) throws Exception {
            if (kill && !COMPARISON) {
                killed++;
                process.destroyForcibly();
            } else {
                process.getOutputStream().close(); // it stops at the end of its input
            }
            process.waitFor();
            reader.join();
        }
    }

    /** What runs in each process: rows get their IDs, in bursts, until the end of the input. */
    static final class Program {
        private static volatile boolean over;

        public static void main(String[] args) throws Exception {
            Thread input = new Thread(Program::awaitEnd);
            input.setDaemon(true);
            input.start();
            LeafSnowflake ids = null;
            IdentifierGenerator generator;
            if (args[0].isEmpty()) {
                generator = new DefaultIdentifierGenerator(InetAddress.getByName(args[1]));
            } else {
                ids = LeafSnowflake.builder(args[0], "orders").holder(args[1]).ttl(Duration.ofSeconds(30)).startWait(Duration.ofSeconds(60)).build();
                generator = new LeafIdentifierGenerator(ids);
            }
            IdWorker.setIdentifierGenerator(generator);
            try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16))) {
                while (!over) {
                    for (int i = 0; i < 10; i++) {
                        out.writeLong(IdWorker.getId());
                    }
                    out.flush();
                    Thread.sleep(1);
                }
            }
            if (ids != null) {
                ids.close();
            }
        }

        private static void awaitEnd() {
            try {
                System.in.read();
            } catch (IOException e) {
                // the same
            }
            over = true;
        }
    }
}
