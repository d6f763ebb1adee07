package io.github.leafid.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** The program of clients/lab, which starts servers and harms them; LEAF_LAB names it. */
public final class Lab implements AutoCloseable {
    private final Process process;
    private final String url;
    private final HttpClient http = HttpClient.newHttpClient();

    private Lab() throws IOException {
        String program = System.getenv("LEAF_LAB");
        if (program == null) {
            throw new IllegalStateException("LEAF_LAB does not name the program of clients/lab: run clients/java/run");
        }
        process = new ProcessBuilder(program).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        url = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
    }

    public static Lab start() throws IOException {
        return new Lab();
    }

    /** Makes a request of the lab and returns its answer. */
    public String call(String method, String path) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path)).method(method, HttpRequest.BodyPublishers.noBody()).build();
        HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() >= 300) {
            throw new AssertionError(path + ": " + answer.statusCode() + ": " + answer.body());
        }
        return answer.body();
    }

    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            process.waitFor();
        } catch (IOException | InterruptedException e) {
            process.destroy();
        }
    }
}
