package io.github.leafid.test;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** Stands between a client and a server, and loses or delays answers. */
public final class Proxy implements AutoCloseable {
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final AtomicInteger lost = new AtomicInteger();
    private volatile double loseShare;
    private volatile long delay;

    public Proxy(int target) throws IOException {
        this.target = target;
        start(this::accept);
    }

    public String url() {
        return "http://127.0.0.1:" + listener.getLocalPort();
    }

    /** Sets the share of answers that are lost after the server has done its work. */
    public void lose(double share) {
        loseShare = share;
    }

    /** Sets how many milliseconds each answer is late. */
    public void delay(long ms) {
        delay = ms;
    }

    /** How many answers have been lost. */
    public int lost() {
        return lost.get();
    }

    private static void start(Runnable task) {
        Thread t = new Thread(task, "proxy");
        t.setDaemon(true);
        t.start();
    }

    private void accept() {
        try {
            for (;;) {
                Socket client = listener.accept();
                Socket server = new Socket("127.0.0.1", target);
                sockets.add(client);
                sockets.add(server);
                start(() -> pump(client, server, false));
                start(() -> pump(server, client, true));
            }
        } catch (IOException e) {
            // closed
        }
    }

    private void pump(Socket from, Socket to, boolean answers) {
        byte[] bytes = new byte[1 << 16];
        try (from; to) {
            InputStream in = from.getInputStream();
            for (int n = in.read(bytes); n >= 0; n = in.read(bytes)) {
                if (answers && ThreadLocalRandom.current().nextDouble() < loseShare) {
                    lost.incrementAndGet();
                    return;
                }
                if (answers && delay > 0) {
                    Thread.sleep(delay);
                }
                to.getOutputStream().write(bytes, 0, n);
            }
        } catch (IOException | InterruptedException e) {
            // the other end has gone
        } finally {
            sockets.remove(from);
            sockets.remove(to);
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Socket s : sockets) {
            s.close();
        }
    }
}
