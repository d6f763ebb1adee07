package io.github.leafid;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads JSON: objects as maps, arrays as lists, whole numbers as Long, others as Double. It throws an
 * IllegalArgumentException on anything else, such as an answer that was cut off.
 */
final class Json {
    private static final int MAX_DEPTH = 64;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        if (json.peek() != 0) {
            throw json.malformed();
        }
        return value;
    }

    /** Reads an object. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> object(String text) {
        Object value = parse(text);
        if (!(value instanceof Map)) {
            throw new IllegalArgumentException("not a JSON object");
        }
        return (Map<String, Object>) value;
    }

    /** Returns a whole number, which Connect writes as a string; 0 if it is absent. */
    static long number(Map<?, ?> object, String name) {
        Object value = object.get(name);
        if (value == null) {
            return 0;
        }
        if (value instanceof Long) {
            return (Long) value;
        }
        if (value instanceof String) {
            return Long.parseLong((String) value);
        }
        throw new IllegalArgumentException(name + " is not a whole number");
    }

    /** Returns a string; empty if it is absent. */
    static String string(Map<?, ?> object, String name) {
        Object value = object.get(name);
        return value instanceof String ? (String) value : "";
    }

    /** Returns an object; an empty one if it is absent. */
    static Map<?, ?> map(Map<?, ?> object, String name) {
        Object value = object.get(name);
        return value instanceof Map ? (Map<?, ?>) value : new LinkedHashMap<String, Object>();
    }

    /** Returns an array; an empty one if it is absent. */
    static List<?> list(Map<?, ?> object, String name) {
        Object value = object.get(name);
        return value instanceof List ? (List<?>) value : new ArrayList<Object>();
    }

    /** Writes an object of strings, numbers and booleans, without the absent values. */
    static String write(Map<String, ?> object) {
        StringBuilder out = new StringBuilder("{");
        for (Map.Entry<String, ?> e : object.entrySet()) {
            if (e.getValue() == null) {
                continue;
            }
            out.append(out.length() > 1 ? "," : "");
            quote(out, e.getKey()).append(':');
            if (e.getValue() instanceof Number || e.getValue() instanceof Boolean) {
                out.append(e.getValue());
            } else {
                quote(out, e.getValue().toString());
            }
        }
        return out.append('}').toString();
    }

    private static StringBuilder quote(StringBuilder out, String s) {
        out.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"');
    }

    private IllegalArgumentException malformed() {
        return new IllegalArgumentException("malformed JSON at character " + at);
    }

    /** Returns the next character that is no space, without consuming it; 0 at the end. */
    private char peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char c) {
        if (peek() != c) {
            throw malformed();
        }
        at++;
    }

    private Object value(int depth) {
        if (depth > MAX_DEPTH) {
            throw malformed();
        }
        switch (peek()) {
            case '{':
                return members(depth);
            case '[':
                return elements(depth);
            case '"':
                return quoted();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> members(int depth) {
        Map<String, Object> out = new LinkedHashMap<>();
        expect('{');
        if (peek() != '}') {
            do {
                peek();
                String name = quoted();
                expect(':');
                out.put(name, value(depth + 1));
            } while (more());
        }
        expect('}');
        return out;
    }

    private List<Object> elements(int depth) {
        List<Object> out = new ArrayList<>();
        expect('[');
        if (peek() != ']') {
            do {
                out.add(value(depth + 1));
            } while (more());
        }
        expect(']');
        return out;
    }

    private boolean more() {
        if (peek() != ',') {
            return false;
        }
        at++;
        return true;
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw malformed();
        }
        at += word.length();
        return value;
    }

    private Object number() {
        int begin = at;
        while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(begin, at);
        try {
            if (digits.matches("-?[0-9]+")) {
                return Long.valueOf(digits);
            }
            return Double.valueOf(digits);
        } catch (NumberFormatException e) {
            throw malformed();
        }
    }

    private String quoted() {
        expect('"');
        StringBuilder out = new StringBuilder();
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return out.toString();
            }
            out.append(c == '\\' ? escaped() : c);
        }
        throw malformed();
    }

    private char escaped() {
        if (at == text.length()) {
            throw malformed();
        }
        char c = text.charAt(at++);
        int plain = "nrtbf".indexOf(c);
        if (plain >= 0) {
            return "\n\r\t\b\f".charAt(plain);
        }
        if (c != 'u') {
            return c;
        }
        if (at + 4 > text.length()) {
            throw malformed();
        }
        at += 4;
        try {
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        } catch (NumberFormatException e) {
            throw malformed();
        }
    }
}
