"""What calls to several servers end with, whatever the servers and the program do."""

import contextlib
import logging
import threading
import time
import unittest
import unittest.mock

from leaf_id import LeafClient, LeafError
from test_vectors import servers


def advance(client):
    """Takes an ID in a thread that a test does not wait for without end, and returns it or the reason of the error."""
    got = []

    def take():
        try:
            got.append(client._source.advance("order", 1).start)
        except LeafError as err:
            got.append(err.reason)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(20)
    return got[0] if got else "no answer"


def granting(store=""):
    return lambda *_: (200, {"range": {"start": "1", "end": "2"}, "step": "1", "store": store})


def refusing(status, reason):
    return lambda *_: (status, {"reason": reason, "detail": "what happened"})


UNKNOWN, AWAY = refusing(404, "UNKNOWN_TAG"), refusing(503, "STORE_UNAVAILABLE")


@contextlib.contextmanager
def answering(answers):
    """Has two servers answer with what two functions return."""
    with servers(1, lambda *args: answers[0](*args)) as a, servers(1, lambda *args: answers[1](*args)) as b:
        yield [a, b]


class Calls(unittest.TestCase):
    def test_observer_that_fails(self):
        """An answer counts although the observer fails, and the log tells."""

        def observe(call):
            raise RuntimeError("of the observer")

        for n, hedge in ((2, 10), (2, 0), (1, 10)):
            with servers(n, granting()) as url, LeafClient(url, hedge=hedge, on_call=observe) as client:
                with self.assertLogs("leaf_id", logging.ERROR) as logs:
                    self.assertEqual(advance(client), 1)
                self.assertIn("of the observer", logs.output[0])

    def test_exceptions(self):
        """A call ends whatever it fails with."""
        for error in (MemoryError(), RuntimeError("x"), IndexError("x"), SystemExit()):
            for hedge in (10, 0):
                with servers(2, granting()) as url, LeafClient(url, hedge=hedge) as client:
                    with unittest.mock.patch.object(client._servers, "_exchange", side_effect=error):
                        with unittest.mock.patch("threading.excepthook"):
                            want = "UNAVAILABLE" if hedge or isinstance(error, Exception) else "no answer"
                            self.assertEqual(advance(client), want, error)

    def test_no_further_threads(self):
        """A server that no thread can ask has failed; the others may answer."""
        real, left = threading.Thread.start, 0

        def start(thread):
            nonlocal left
            if thread.name == "leaf-call":
                left -= 1
                if left < 0:
                    raise RuntimeError("can't start new thread")
            real(thread)

        def slow(*_):
            time.sleep(0.3)
            return granting()()

        with servers(2, slow) as url, LeafClient(url, hedge=0.05) as client, unittest.mock.patch("threading.Thread.start", start):
            for left, want in ((1, 1), (0, "UNAVAILABLE")):
                self.assertEqual(advance(client), want)

    def test_tag_of_another_server(self):
        """A tag that one server does not know may be another one's, unless that server has the known store or all
        say so. Only a server that knows the tag is asked first from then on."""
        for name, proven, first, second, want, active in (
            ("the other has it", False, UNKNOWN, granting("mine"), 1, 1),
            ("nobody has it", False, UNKNOWN, UNKNOWN, "UNKNOWN_TAG", 0),
            ("the other is away", False, UNKNOWN, AWAY, "STORE_UNAVAILABLE", 0),
            ("away, but the first knows", True, UNKNOWN, AWAY, "UNKNOWN_TAG", 0),
            ("away first", False, AWAY, UNKNOWN, "STORE_UNAVAILABLE", 0),
            ("the other has another", False, UNKNOWN, granting("other"), "UNKNOWN_TAG", 0),
            ("the first has another", False, granting("other"), UNKNOWN, "UNKNOWN_TAG", 0),
            ("the first has the known store", True, UNKNOWN, granting("mine"), 1, 1),
        ):
            for hedge in (0, 10):
                answers = [granting("mine"), second]
                with self.subTest(name, hedge=hedge), answering(answers) as urls, LeafClient(urls, hedge=hedge) as client:
                    client._servers._active = 0
                    client._source._store = "mine"
                    if proven:
                        self.assertEqual(advance(client), 1)
                    answers[0] = first
                    client._servers._all[0].fails = 1  # a while ago
                    self.assertEqual(advance(client), want)
                    self.assertEqual(client._servers._active, active)
                    self.assertEqual(client._servers._all[0].fails, 0 if first is UNKNOWN else 2)

    def test_tag_and_frozen_server(self):
        """A tag is unknown two seconds after a server of the known store said so, whatever the others do."""
        end = threading.Event()
        answers = [granting("mine"), lambda *_: (end.wait(20), AWAY())[1]]
        with answering(answers) as urls, LeafClient(urls, call_timeout=20) as client:
            client._servers._active = 0
            client._source._store = "mine"
            self.assertEqual(advance(client), 1)
            answers[0] = UNKNOWN
            begun = time.monotonic()
            self.assertEqual(advance(client), "UNKNOWN_TAG")
            self.assertGreaterEqual(time.monotonic() - begun, 2)
            end.set()

    def test_tag_lives_on(self):
        """A stock does not end because a server of another store does not know its tag."""
        with answering([UNKNOWN, granting("mine")]) as urls, LeafClient(urls, hedge=0) as client:
            client._servers._active = 0
            self.assertEqual(client.next("order"), 1)
            self.assertEqual(client.next("order"), 1)  # as the server answers the same

    def test_answer_of_something_else(self):
        """An error that Leaf has not written is that of a server which is not there."""
        page = "<html><body>Not here</body></html>"
        strange = [(status, page) for status in (301, 302, 307, 400, 404, 405, 409, 413, 429)]
        strange += [(404, body) for body in ("", "[1]", "null", {"error": "x"}, {"reason": "NotFound"}, {"reason": {"a": 1}})]
        strange += [(404, {"details": [{"type": "google.rpc.ErrorInfo", "value": value}]}) for value in ("", "Cg==", "!", "Cv8=", 1)]
        for status, body in strange:
            with self.subTest(status=status, body=body), answering([lambda *_: (status, body), granting()]) as urls:
                with LeafClient(urls, hedge=0) as client:
                    client._servers._active = 0
                    self.assertEqual(advance(client), 1)
                    self.assertEqual(client._servers._active, 1)
                with LeafClient(urls[0]) as client:
                    self.assertEqual(advance(client), "UNAVAILABLE")


if __name__ == "__main__":
    unittest.main()
