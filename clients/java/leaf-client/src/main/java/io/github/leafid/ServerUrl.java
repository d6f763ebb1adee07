package io.github.leafid;

import java.io.UnsupportedEncodingException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The URL of one or several servers: http://h1:8080,h2:8080 or https://TOKEN@h1:8443. */
final class ServerUrl {
    final List<String> servers = new ArrayList<>();
    final String token; // null: none

    /** Takes a URL apart. No error message holds the token. */
    ServerUrl(String text) {
        int colon = text == null ? -1 : text.indexOf("://");
        String scheme = colon < 0 ? "" : scheme(text.substring(0, colon));
        if (scheme.isEmpty()) {
            throw LeafException.invalid("the URL of the servers does not begin with http:// or https://");
        }
        String rest = text.substring(colon + 3);
        int at = rest.lastIndexOf('@');
        token = at < 0 ? null : decode(rest.substring(0, at));
        rest = rest.substring(at + 1).replaceFirst("/$", "");
        if (rest.contains("://")) {
            throw LeafException.invalid("the URL of several servers has one scheme, as in http://h1:8080,h2:8080");
        }
        for (String host : rest.split(",", -1)) {
            servers.add(check(scheme + "://" + host));
        }
    }

    private static String scheme(String name) {
        switch (name.toLowerCase(Locale.ROOT)) {
            case "http":
            case "leaf":
                return "http";
            case "https":
            case "leafs":
                return "https";
            default:
                return "";
        }
    }

    private static String decode(String token) {
        try {
            String text = URLDecoder.decode(token.replace("+", "%2B"), "UTF-8");
            if (!text.contains(":")) {
                return text;
            }
        } catch (UnsupportedEncodingException | IllegalArgumentException e) {
            // the same answer
        }
        throw LeafException.invalid("malformed token before the @ in the URL of the servers");
    }

    private static String check(String server) {
        try {
            URI uri = new URI(server);
            if (uri.getHost() != null && uri.getPath().isEmpty() && uri.getQuery() == null && uri.getFragment() == null) {
                return server;
            }
        } catch (URISyntaxException e) {
            // the same answer
        }
        throw LeafException.invalid("a server is http://host:port or https://host:port");
    }
}
