import io.github.leafid.LeafClient;
import java.io.PrintWriter;
import java.time.Duration;

public class Take {
    public static void main(String[] args) throws Exception {
        try (LeafClient ids = LeafClient.builder(args[0]).wait(Duration.ofSeconds(2)).build(); PrintWriter out = new PrintWriter(args[1])) {
            long begun = System.nanoTime();
            for (long n = 0; n < Long.parseLong(args[2]); n++) {
                out.println(ids.next("order"));
                if (n % 1000 == 0) {
                    long early = begun + n * 1_000_000_000 / Long.parseLong(args[3]) - System.nanoTime();
                    Thread.sleep(Math.max(0, early / 1_000_000));
                }
            }
        }
    }
}
