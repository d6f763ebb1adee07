package io.github.leafid;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** The token for the servers: a fixed one, that of a file, or none. */
final class Token {
    private static final long FILE_AGE = TimeUnit.SECONDS.toNanos(1); // after it the file is read again

    private final Path file; // null: the token is fixed
    private String value; // null: no token
    private long read;

    Token(String value, Path file) {
        this.value = value == null ? null : value.trim();
        this.file = file;
    }

    synchronized String get() throws IOException {
        if (file != null && (value == null || System.nanoTime() - read > FILE_AGE)) {
            String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8).trim();
            if (text.isEmpty()) {
                throw new IOException("read the token: " + file + " is empty");
            }
            value = text;
            read = System.nanoTime();
        }
        return value;
    }
}
