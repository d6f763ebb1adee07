package io.github.leafid;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLSocketFactory;

/** One HTTP request to one server. Another thread may {@link #abort()} it. */
final class Exchange {
    private static final int MAX_ANSWER = 1 << 20;

    private final String method;
    private final String url;
    private final String body; // null: none
    private volatile HttpURLConnection connection;
    private volatile boolean aborted;

    int status;
    String answer;

    Exchange(String method, String url, String body) {
        this.method = method;
        this.url = url;
        this.body = body;
    }

    /** Sends the request and waits for the answer, at most about timeout milliseconds. */
    void run(String token, SSLSocketFactory tls, int timeout) throws IOException {
        HttpURLConnection c = (HttpURLConnection) new URL(url).openConnection();
        connection = c;
        if (tls != null && c instanceof HttpsURLConnection) {
            ((HttpsURLConnection) c).setSSLSocketFactory(tls);
        }
        c.setConnectTimeout(timeout);
        c.setReadTimeout(timeout);
        c.setInstanceFollowRedirects(false);
        c.setUseCaches(false);
        c.setRequestMethod(method);
        c.setRequestProperty("Accept", "application/json");
        if (token != null) {
            c.setRequestProperty("Authorization", "Bearer " + token);
        }
        if (aborted) {
            throw new IOException("aborted");
        }
        send(c);
        receive(c);
    }

    private void send(HttpURLConnection c) throws IOException {
        if (body == null) {
            return;
        }
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        c.setDoOutput(true);
        c.setFixedLengthStreamingMode(bytes.length); // otherwise the JDK repeats a POST by itself
        c.setRequestProperty("Content-Type", "application/json");
        try (OutputStream out = c.getOutputStream()) {
            out.write(bytes);
        }
    }

    private void receive(HttpURLConnection c) throws IOException {
        try {
            status = c.getResponseCode();
        } catch (HttpRetryException e) { // how the JDK reports a 401 here
            status = e.responseCode();
            answer = "";
            return;
        }
        if (status < 0) {
            throw new IOException("the answer is not HTTP");
        }
        try (InputStream in = status >= 400 ? c.getErrorStream() : c.getInputStream()) {
            answer = in == null ? "" : read(in);
        }
    }

    private static String read(InputStream in) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] part = new byte[4096];
        for (int n = in.read(part); n >= 0; n = in.read(part)) {
            out.write(part, 0, n);
            if (out.size() > MAX_ANSWER) {
                throw new IOException("the answer is too long");
            }
        }
        return new String(out.toByteArray(), StandardCharsets.UTF_8);
    }

    /** Ends the request; what the server answers is dropped. */
    void abort() {
        aborted = true;
        HttpURLConnection c = connection;
        if (c != null) {
            c.disconnect();
        }
    }
}
