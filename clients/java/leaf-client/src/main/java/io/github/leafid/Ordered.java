package io.github.leafid;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Makes a call for each ID. */
final class Ordered implements IdGenerator {
    private final Servers servers;
    private final ServerSource source;
    private final String scheme;
    private final String key;

    Ordered(Servers servers, ServerSource source, String scheme, String key) {
        this.servers = servers;
        this.source = source;
        this.scheme = scheme;
        this.key = key;
    }

    @Override
    public long next() {
        return next(1)[0];
    }

    @Override
    public long[] next(int n) {
        return IdRange.flatten(issue("", false, n, true).ranges(), n);
    }

    /** Makes one call. An empty period means the present one; form: texts in place of numbers. */
    Issued issue(String period, boolean form, int n, boolean hedged) {
        if (n < 1) {
            throw LeafException.invalid("n = " + n + " is below 1");
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("scheme", scheme);
        fields.put("key", key);
        fields.put("count", n);
        fields.put("tellStore", true);
        fields.put("period", period);
        fields.put("form", form);
        return servers.repeat(Request.connect("Take", fields, (server, answer) -> read(server, answer, period, form, n)), hedged);
    }

    private Issued read(Server server, Map<String, Object> answer, String period, boolean form, int n) {
        source.checkStore(server, Json.string(answer, "store"));
        String got = Json.string(answer, "period");
        if (!period.isEmpty() && !got.equals(period)) {
            throw new LeafException("UNSUPPORTED", "leaf server " + server.host + " knows no periods: upgrade it");
        }
        List<String> texts = new ArrayList<>();
        for (Object o : Json.list(answer, "texts")) {
            texts.add((String) o);
        }
        if (form && texts.isEmpty()) {
            throw new LeafException("UNSUPPORTED", "leaf server " + server.host + " knows no forms: upgrade it");
        }
        List<IdRange> ranges = new ArrayList<>();
        long count = texts.size();
        for (Object o : Json.list(answer, "ranges")) {
            IdRange range = new IdRange(Json.number((Map<?, ?>) o, "start"), Json.number((Map<?, ?>) o, "end"));
            ranges.add(range);
            count += range.size();
        }
        if (count != n) {
            throw new IllegalArgumentException("it has " + count + " IDs when asked for " + n);
        }
        return new Issued(ranges, texts, got);
    }
}
