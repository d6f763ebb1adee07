package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.leafid.test.Lab;
import io.github.leafid.test.Tls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Year;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/** The scenarios of all clients, in clients/scenarios.json. */
class ScenarioTest {
    private static Lab lab;

    @BeforeAll
    static void start() throws Exception {
        lab = Lab.start();
    }

    @AfterAll
    static void stop() {
        lab.close();
    }

    @TestFactory
    @Timeout(600)
    Stream<DynamicTest> scenarios() throws IOException {
        Map<String, Object> file = Json.object(Files.readString(Path.of("../../scenarios.json")));
        return Json.list(file, "scenarios").stream().map(s -> (Map<?, ?>) s)
                .filter(s -> !s.containsKey("only") || Json.list(s, "only").contains("java"))
                .map(s -> DynamicTest.dynamicTest(Json.string(s, "name"), () -> run(s, Json.map(file, "options"))));
    }

    private static void run(Map<?, ?> scenario, Map<?, ?> defaults) throws Exception {
        Map<String, Object> world = Json.object(lab.call("POST", "/worlds?" + Json.string(scenario, "world")));
        Run run = new Run(scenario, defaults, world);
        try {
            List<?> steps = Json.list(scenario, "steps");
            for (int i = 0; i < steps.size(); i++) {
                try {
                    run.step((Map<?, ?>) steps.get(i));
                } catch (Exception | AssertionError e) {
                    throw new AssertionError("step " + (i + 1) + ", " + steps.get(i) + ": " + e.getMessage(), e);
                }
            }
        } finally {
            for (Program p : run.programs.values()) {
                p.close.close();
            }
            lab.call("DELETE", "/worlds/" + Json.string(world, "world"));
        }
    }

    /** A client of a scenario. */
    private static final class Program {
        IdGenerator ids;
        AutoCloseable close;
        LeafClient client; // null: a generator with a lease
    }

    /** One scenario: its clients by name, and all IDs that they gave. */
    private static final class Run {
        final Map<?, ?> scenario;
        final Map<Object, Object> options = new HashMap<>();
        final Map<String, Object> world;
        final Map<String, Program> programs = new HashMap<>();
        final Set<String> seen = new HashSet<>();
        long[] latest = {};

        Run(Map<?, ?> scenario, Map<?, ?> defaults, Map<String, Object> world) {
            this.scenario = scenario;
            this.world = world;
            options.putAll(defaults);
            options.putAll(Json.map(scenario, "options"));
        }

        private Program program(String name) throws Exception {
            Program p = programs.get(name);
            if (p == null) {
                p = open();
                programs.put(name, p);
            }
            return p;
        }

        private Program open() throws Exception {
            Program p = new Program();
            if (Json.string(scenario, "kind").equals("lease")) {
                LeafSnowflake.Builder b = configure(LeafSnowflake.builder(Json.string(world, "url"), "order")).startWait(Duration.ofSeconds(5));
                if (options.containsKey("ttl")) {
                    b.ttl(ms("ttl"));
                }
                LeafSnowflake generator = b.wait(ms("wait")).build();
                p.ids = generator;
                p.close = generator;
                return p;
            }
            LeafClient.Builder b = configure(LeafClient.builder(Json.string(world, "url"))).wait(ms("wait"));
            if (options.containsKey("outage_budget")) {
                b.outageBudget(ms("outage_budget"));
            }
            if (options.containsKey("max_stock")) {
                b.maxStock(Json.number(options, "max_stock"));
            }
            p.client = b.build();
            p.close = p.client;
            p.ids = Json.string(scenario, "kind").equals("ordered") ? p.client.ordered("segment", "order") : p.client.tag("order");
            return p;
        }

        private Duration ms(String option) {
            return Duration.ofMillis(Json.number(options, option));
        }

        private <B extends ServersBuilder<B>> B configure(B b) throws Exception {
            String token = Json.string(scenario, "token");
            if (token.equals("all") || token.equals("weak")) {
                b.token(Json.string(world, token.equals("all") ? "token" : "weak_token"));
            }
            String certificate = Json.string(world, "cert_file");
            if (!certificate.isEmpty() && !Json.string(scenario, "trust").equals("none")) {
                b.ssl(Tls.trusting(Path.of(certificate)));
            }
            if (options.containsKey("call_timeout")) {
                b.callTimeout(ms("call_timeout"));
            }
            return options.containsKey("hedge") ? b.hedge(ms("hedge")) : b;
        }

        /** Makes one call for numbers of a period, or of the present one, which is a year. */
        private Object issue(String name, String period, int n) throws Exception {
            Issued got = program(name).client.issue("order", period, n);
            String present = Json.string(scenario, "world").contains("period=year") ? Year.now(ZoneOffset.UTC) + "-01-01" : "";
            assertEquals(period.isEmpty() ? present : period, got.period());
            assertEquals(n, got.ranges().stream().mapToLong(IdRange::size).sum());
            return add(got.period(), IdRange.flatten(got.ranges(), n));
        }

        private Object take(String name, String period, int n) throws Exception {
            if (Json.string(scenario, "kind").equals("issue")) {
                return issue(name, period, n);
            }
            IdGenerator ids = program(name).ids;
            long[] got = new long[n];
            for (int i = 0; i < n; i++) {
                got[i] = ids.next();
            }
            return add("", got);
        }

        private Object batch(String name, String period, int n) throws Exception {
            if (Json.string(scenario, "kind").equals("issue")) {
                return issue(name, period, n);
            }
            long[] got = program(name).ids.next(n);
            assertEquals(n, got.length);
            return add("", got);
        }

        private Object add(String period, long[] ids) {
            for (long id : ids) {
                assertTrue(seen.add(period + " " + id), id + " came twice");
            }
            latest = ids;
            return null;
        }

        private static String reason(Callable<?> call) throws Exception {
            try {
                call.call();
                return "";
            } catch (LeafException e) {
                return e.reason();
            }
        }

        private static void poll(String what, long ms, Callable<Boolean> check) throws Exception {
            long end = System.nanoTime() + ms * 1_000_000;
            while (!check.call()) {
                assertTrue(System.nanoTime() < end, what);
                Thread.sleep(5);
            }
        }

        private TagStats stats(String name) throws Exception {
            return program(name).client.stats().get(0);
        }

        void step(Map<?, ?> step) throws Exception {
            String name = step.containsKey("by") ? Json.string(step, "by") : "a";
            String period = Json.string(step, "period");
            long begun = System.nanoTime();
            if (step.containsKey("fails")) {
                int size = (int) Json.number(step, "batch");
                assertEquals(Json.string(step, "fails"), reason(() -> step.containsKey("batch") ? batch(name, period, size) : take(name, period, 1)));
            } else {
                for (Map.Entry<?, ?> e : step.entrySet()) {
                    act(name, period, (String) e.getKey(), String.valueOf(e.getValue()));
                }
            }
            long took = (System.nanoTime() - begun) / 1_000_000;
            assertTrue(!step.containsKey("within") || took < Json.number(step, "within"), "took " + took + " ms");
        }

        private void act(String name, String period, String kind, String value) throws Exception {
            int n = value.matches("[0-9]+") ? Integer.parseInt(value) : 0;
            String path = "/worlds/" + Json.string(world, "world");
            switch (kind) {
                case "take" -> take(name, period, n);
                case "batch" -> batch(name, period, n);
                case "is" -> {
                    take(name, period, 1);
                    assertEquals(n, latest[0]);
                }
                case "text" -> {
                    List<String> texts = List.of(value.split(" "));
                    assertEquals(texts, program(name).client.issueTexts("order", "", texts.size()).texts());
                }
                case "increasing" -> {
                    for (int i = 1; i < latest.length; i++) {
                        assertTrue(latest[i] > latest[i - 1]);
                    }
                }
                case "drain" -> drain(name, value);
                case "recover" -> poll("calls still fail", n, () -> {
                    String reason = reason(() -> take(name, period, 1));
                    assertTrue(List.of("", LeafException.EXHAUSTED, LeafException.NO_WORKER_ID).contains(reason), reason);
                    return reason.isEmpty();
                });
                case "stock" -> poll("no stock of " + n, 20_000, () -> stats(name).stock() >= n);
                case "stock_at_most" -> assertTrue(stats(name).stock() <= n, "stock " + stats(name).stock());
                case "granted_at_most" -> assertTrue(stats(name).granted() <= n, "granted " + stats(name).granted());
                case "harm" -> lab.call("POST", path + "/" + value);
                case "calls" -> {
                    long sum = ((List<?>) Json.parse(lab.call("GET", path + "/calls"))).stream().mapToLong(c -> (Long) c).sum();
                    assertTrue(sum <= n, sum + " calls");
                }
                case "pass" -> Thread.sleep(n);
                case "freeze" -> lab.call("POST", "/freezes?pid=" + ProcessHandle.current().pid() + "&ms=" + n);
                case "close" -> program(value).close.close();
                case "by", "within", "period" -> { }
                default -> throw new AssertionError("unknown step " + kind);
            }
        }

        private void drain(String name, String want) throws Exception {
            String reason = "";
            while (reason.isEmpty()) {
                reason = reason(() -> take(name, "", 1));
                if (Json.string(scenario, "kind").equals("lease")) {
                    Thread.sleep(1);
                }
            }
            assertEquals(want, reason);
        }
    }
}
