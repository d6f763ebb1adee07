"""What calls to several servers end with, whatever the servers and the program do."""

import logging
import threading
import time
import unittest
import unittest.mock

from leaf_id import LeafClient, LeafError
from test_vectors import servers

GRANT = {"ranges": [{"start": "1", "end": "2"}]}


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


if __name__ == "__main__":
    unittest.main()
