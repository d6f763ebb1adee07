package io.github.leafid.test;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A real server on 127.0.0.1, of the program in LEAF_BIN, with a folder for its data. */
public final class LeafServer implements AutoCloseable {
    private static final String BIN = System.getenv("LEAF_BIN");
    private static final Pattern URL = Pattern.compile("msg=serving.* url=([^ ]+)");

    private final Path folder;
    private final List<String> flags;
    private Process process;
    private String url;

    private LeafServer(String... flags) throws IOException {
        if (BIN == null) {
            throw new IllegalStateException("LEAF_BIN does not name the program leaf: run clients/java/run");
        }
        this.flags = Arrays.asList(flags);
        this.folder = Files.createTempDirectory("leaf-java");
    }

    /** Starts a server with further flags. */
    public static LeafServer start(String... flags) throws Exception {
        LeafServer server = new LeafServer(flags);
        server.restart();
        return server;
    }

    /** Starts the server again, on the port that it had before. */
    public void restart() throws Exception {
        Path log = Files.createTempFile(folder, "log", "");
        List<String> command = new ArrayList<>(List.of(BIN, "serve", "--data", folder.resolve("data").toString(), "--resp", "off", "--listen",
                url == null ? "127.0.0.1:0" : "127.0.0.1:" + port()));
        command.addAll(flags);
        ProcessBuilder b = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        b.environment().keySet().removeIf(name -> name.startsWith("LEAF_"));
        b.environment().put("LEAF_LOG_FORMAT", "text");
        b.environment().put("LEAF_ID_SPACE", folder.toString());
        process = b.start();
        for (int i = 0; i < 600; i++) {
            String text = Files.readString(log);
            Matcher m = URL.matcher(text);
            if (m.find() && text.contains("holding a worker ID")) {
                url = m.group(1);
                return;
            }
            if (!process.isAlive()) {
                break;
            }
            Thread.sleep(50);
        }
        kill();
        throw new IllegalStateException(Files.readString(log));
    }

    /** The server's URL, without a slash at the end. */
    public String url() {
        return url;
    }

    public int port() {
        return Integer.parseInt(url.substring(url.lastIndexOf(':') + 1));
    }

    /** The folder of its data, for backups. */
    public Path data() {
        return folder.resolve("data");
    }

    public Process process() {
        return process;
    }

    /** Ends the server at once. */
    public void kill() {
        process.destroyForcibly().onExit().join();
    }

    /** Has the server end by itself. */
    public void stop() throws Exception {
        process.destroy();
        process.waitFor(30, TimeUnit.SECONDS);
    }

    /** Runs a command of the program against this server, and returns its output. */
    public String leaf(String... args) throws Exception {
        return run(url, args);
    }

    /** Runs a command of the program against a server. */
    public static String run(String url, String... args) throws Exception {
        List<String> command = new ArrayList<>(List.of(BIN));
        command.addAll(Arrays.asList(args));
        ProcessBuilder b = new ProcessBuilder(command).redirectErrorStream(true);
        b.environment().put("LEAF_SERVER", url);
        Process p = b.start();
        String out = new String(p.getInputStream().readAllBytes());
        if (p.waitFor() != 0) {
            throw new IllegalStateException(String.join(" ", args) + ": " + out);
        }
        return out;
    }

    public void tag(String name, long step) throws Exception {
        leaf("tag", "create", name, "--step", Long.toString(step));
    }

    /** Creates a pool with worker bits, and with IDs of the layout of Java Leaf if there are 10. */
    public String pool(String name, int workerBits, String maxTtl) throws Exception {
        String layout = workerBits == 10 ? "leaf" : "epoch=2026-01-01T00:00:00Z,worker=" + workerBits + ",sequence=12";
        leaf("worker", "pool", "create", name, "--layout", layout, "--max-ttl", maxTtl);
        return name;
    }

    /** Creates a pool with one free worker ID: another program has the other one, for as long as the tests last. */
    public String poolOfOne(String name) throws Exception {
        pool(name, 1, "1h");
        HttpURLConnection c = (HttpURLConnection) new URL(url + "/v1/workers/leases").openConnection();
        c.setDoOutput(true);
        c.getOutputStream().write(("{\"pool\":\"" + name + "\",\"ttl\":\"60m\"}").getBytes());
        if (c.getResponseCode() != 200) {
            throw new IllegalStateException("claim: HTTP status " + c.getResponseCode());
        }
        return name;
    }

    @Override
    public void close() {
        if (process != null) {
            kill();
        }
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
