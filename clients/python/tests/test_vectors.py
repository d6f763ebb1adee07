"""The vectors that the server and all clients run: LEAF_VECTORS names their folder."""

import contextlib
import http.server
import json
import os
import threading
import time
import unittest

from leaf_id import Issued, Layout, LeafClient, LeafError, WorkerLease


def vectors(name):
    with open(os.path.join(os.environ["LEAF_VECTORS"], name + ".json")) as file:
        return json.load(file)


@contextlib.contextmanager
def servers(n, handle):
    """Has servers answer with what handle returns: a status, and JSON or a text."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = handle(self.command, self.path)
            text = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_DELETE = answer

        def log_message(self, *_):
            pass

    started = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(n)]
    for server in started:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield "http://" + ",".join(f"127.0.0.1:{s.server_port}" for s in started)
    finally:
        for server in started:
            server.shutdown()
            server.server_close()


def claim(url):
    WorkerLease(url, "p").close()


def take(url):
    with LeafClient(url, hedge=0) as client:
        client.ordered("segment", "order").next()


class Vectors(unittest.TestCase):
    def test_server_from_before_periods_and_forms(self):
        answer = {"ranges": [{"start": "1", "end": "2"}]}
        with servers(2, lambda *_: (200, answer)) as url, LeafClient(url) as client:
            with self.assertRaises(LeafError) as failed:
                client.issue("order", period="2026-11-23")
            self.assertEqual(failed.exception.reason, "UNSUPPORTED")
            with self.assertRaises(LeafError) as failed:
                client.issue("order", form=True)
            self.assertEqual(failed.exception.reason, "UNSUPPORTED")
            self.assertEqual(client.issue("order"), Issued([range(1, 2)], "", []))

    def test_layouts(self):
        file = vectors("layouts")
        for v in file["layouts"]:
            layout = layout_of(v)
            for i in v["ids"]:
                self.assertEqual(layout.compose(i["tick"], i["worker"], i["sequence"]), int(i["id"]))
                got = layout.decode(int(i["id"]))
                self.assertEqual((got.tick, got.worker, got.sequence, got.time), (i["tick"], i["worker"], i["sequence"], i["time"]))
            for i in v["refused"]:
                self.assertRaises(LeafError, layout.compose, i["tick"], i["worker"], i["sequence"])
            for i in v["undecodable"]:
                self.assertRaises(LeafError, layout.decode, int(i))
        for v in file["invalid"]:
            self.assertRaises(LeafError, layout_of, v)

    def test_leases(self):
        for v in vectors("leases")["leases"]:
            released = []

            def handle(method, path):
                if method == "DELETE":
                    released.append(path.split("used=")[1])
                known = {k: v[k] for k in ("layout", "worker", "floor", "limit")}
                return 200, {"lease": "secret", "pool": "p", "now": v["floor"], "renew_at": v["floor"] + 600_000, **known}

            with servers(1, handle) as url:
                lease = WorkerLease(url, "p")

                def covers(i):
                    got = lease.layout.decode(int(i))
                    return got.worker == lease.worker and lease.use(got.time, got.time + lease.layout.tick_ms - 1)

                self.assertEqual([i for i in v["outside"] if covers(i)], [], v["name"])
                self.assertEqual([i for i in v["inside"] if covers(i)], v["inside"], v["name"])
                lease.seal()
                self.assertEqual([i for i in v["inside"] if covers(i)], [], v["name"])
                lease.close()
                lease.close()
                self.assertEqual(released, [str(v.get("used_after_last", "none"))], v["name"])

    def test_renewals(self):
        layout = {"epoch": 0, "tick_ms": 1, "time_bits": 41, "worker_bits": 5, "sequence_bits": 7}
        for v in vectors("leases")["renewals"]:
            answers, limits, leases = [v["limit"], *v["answers"]], [], []

            def handle(method, path):
                limits.extend(lease.limit for lease in leases)  # after the answer before
                limit = answers.pop(0) if answers else 0
                return 200, {"lease": "secret", "pool": "p", "worker": 1, "layout": layout, "floor": 0, "limit": limit, "now": 0, "renew_at": 100}

            with servers(1, handle) as url:
                leases.append(WorkerLease(url, "p"))
                end = time.monotonic() + 20
                while len(limits) <= len(v["limits"]) and time.monotonic() < end:
                    time.sleep(0.001)
                leases[0].close()
            self.assertEqual(limits[: len(v["limits"]) + 1], [v["limit"], *v["limits"]], v["name"])

    def test_errors(self):
        file = vectors("errors")
        for e in file["errors"]:
            self.refused(e["reason"], e["http"], claim)
            self.refused(e["reason"], e["connect"], take)
        for e in file["strange"]:
            self.refused(e["reason"], e, claim)
            self.refused(e["reason"], e, take)

    def refused(self, reason, answer, call):
        """Two servers give this answer: the call must fail so, after it has asked both or one. A tag may be
        that of another server."""
        asked = []

        def handle(method, path):
            asked.append(path)
            return answer["status"], answer["body"]

        with servers(2, handle) as url, self.assertRaises(LeafError) as failed:
            call(url)
        self.assertEqual(failed.exception.reason, reason, answer)
        self.assertEqual(len(asked), 2 if answer["another_server"] or reason == "UNKNOWN_TAG" else 1, answer)


def layout_of(v):
    return Layout(*(v[k] for k in ("epoch", "tick_ms", "time_bits", "worker_bits", "sequence_bits")))


if __name__ == "__main__":
    unittest.main()
