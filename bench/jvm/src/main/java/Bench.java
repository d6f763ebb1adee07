import com.xfvape.uid.exception.UidGenerateException;
import com.xfvape.uid.impl.CachedUidGenerator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/**
 * Measures the JVM's ID generators. It reads lines "NAME THREADS MILLISECONDS" and answers
 * each with the nanoseconds per ID, so that its turns come between those of the Go programs.
 */
public class Bench {
    private static volatile long sink; // keeps the compiler from leaving the work out

    public static void main(String[] args) throws Exception {
        Map<String, LongSupplier> generators = new LinkedHashMap<>();
        generators.put("atomiclong", new AtomicLong()::incrementAndGet);
        generators.put("cosid-segment-chain", new SegmentChainId(new IdSegmentDistributor.Mock())::generate);
        generators.put("cosid-snowflake", new MillisecondSnowflakeId(1)::generate);
        generators.put("uid-generator-cached", uidGenerator());
        for (LongSupplier ids : generators.values()) {
            measure(ids, 1, 1500); // until it is compiled
        }
        System.out.println("ready");
        for (String line; (line = readLine()) != null; ) {
            String[] words = line.split(" ");
            LongSupplier ids = generators.get(words[0]);
            System.out.println(measure(ids, Integer.parseInt(words[1]), Long.parseLong(words[2])));
        }
        System.exit(0); // the generators' threads would go on
    }

    private static final java.io.BufferedReader in =
            new java.io.BufferedReader(new java.io.InputStreamReader(System.in));

    private static String readLine() throws Exception {
        return in.readLine();
    }

    /** 29 bits of seconds, since the default of 28 has run out, 21 of worker, 13 of sequence. */
    private static LongSupplier uidGenerator() throws Exception {
        CachedUidGenerator uids = new CachedUidGenerator();
        uids.setWorkerIdAssigner(() -> 1);
        uids.setTimeBits(29);
        uids.setWorkerBits(21);
        uids.setSeqBits(13);
        uids.setEpochStr("2016-05-20");
        uids.afterPropertiesSet();
        return () -> {
            while (true) {
                try {
                    return uids.getUID();
                } catch (UidGenerateException | IllegalArgumentException empty) { // callers try again
                    Thread.yield();
                }
            }
        };
    }

    private static double measure(LongSupplier ids, int threads, long millis) throws Exception {
        CountDownLatch ready = new CountDownLatch(threads);
        long[] count = new long[threads * 16]; // a cache line each
        Thread[] all = new Thread[threads];
        long[] until = new long[1];
        CountDownLatch go = new CountDownLatch(1);
        for (int t = 0; t < threads; t++) {
            int at = t * 16;
            all[t] = new Thread(() -> {
                ready.countDown();
                try {
                    go.await();
                } catch (InterruptedException e) {
                    return;
                }
                long n = 0;
                long last = 0;
                while (System.nanoTime() < until[0]) {
                    for (int i = 0; i < 1024; i++) {
                        last += ids.getAsLong();
                    }
                    n += 1024;
                }
                sink = last;
                count[at] = n;
            });
            all[t].start();
        }
        ready.await();
        long began = System.nanoTime();
        until[0] = began + millis * 1_000_000;
        go.countDown();
        for (Thread t : all) {
            t.join();
        }
        long took = System.nanoTime() - began;
        long n = 0;
        for (int t = 0; t < threads; t++) {
            n += count[t * 16];
        }
        return (double) took / n;
    }
}
