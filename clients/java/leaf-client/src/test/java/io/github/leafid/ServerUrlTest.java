package io.github.leafid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import org.junit.jupiter.api.Test;

class ServerUrlTest {
    @Test
    void takesApart() {
        ServerUrl u = new ServerUrl("leafs://a%40b+c@h1:8443,h2:8443/");
        assertEquals(List.of("https://h1:8443", "https://h2:8443"), u.servers);
        assertEquals("a@b+c", u.token);
        assertEquals(List.of("http://[::1]:80"), new ServerUrl("http://[::1]:80").servers);
    }

    @Test
    void refuses() {
        for (String bad : List.of("", "h1:8080", "ftp://h1", "http://", "http://h1,", "http://h1/path", "http://a:secret@h1", "http://h1,http://h2", "http://h1?x=1")) {
            LeafException e = assertThrows(LeafException.class, () -> new ServerUrl(bad), bad);
            assertEquals(LeafException.INVALID_ARGUMENT, e.reason());
            assertFalse(e.getMessage().contains("secret"));
        }
        assertThrows(LeafException.class, () -> new ServerUrl(null));
    }
}
