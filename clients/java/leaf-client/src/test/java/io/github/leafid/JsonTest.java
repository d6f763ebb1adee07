package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void reads() {
        Map<String, Object> m = Json.object(" {\"a\": [1, -2, 1.5e3, \"x\\n\\u00e9\\\"\"], \"b\":{}, \"c\":null, \"d\":true, \"e\":\"9223372036854775807\"} ");
        assertEquals(List.of(1L, -2L, 1500.0, "x\n\u00e9\""), m.get("a"));
        assertEquals(Long.MAX_VALUE, Json.number(m, "e"));
        assertEquals(true, m.get("d"));
        assertEquals(0, Json.number(m, "absent"));
    }

    @Test
    void refusesWhatWasCutOff() {
        String whole = "{\"range\":{\"start\":\"1\", \"end\":\"11\"}, \"n\":[12,true]}";
        for (int i = 0; i < whole.length(); i++) {
            String cut = whole.substring(0, i);
            assertThrows(IllegalArgumentException.class, () -> Json.object(cut), cut);
        }
        for (String bad : List.of("[1]", "{} x", "{\"a\":99999999999999999999}", "{a:1}", "{\"a\":-}")) {
            assertThrows(IllegalArgumentException.class, () -> Json.object(bad), bad);
        }
        assertThrows(IllegalArgumentException.class, () -> Json.parse("[".repeat(100_000)));
    }

    @Test
    void writes() {
        Map<String, Object> m = new java.util.TreeMap<>();
        m.put("a", "x\"\\\n");
        m.put("b", null);
        m.put("c", 5);
        assertEquals("{\"a\":\"x\\\"\\\\\\u000a\",\"c\":5}", Json.write(m));
    }
}
