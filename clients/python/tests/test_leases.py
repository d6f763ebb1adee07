"""Runs against the server at LEAF_URL, and against servers of its own made from LEAF_BIN."""

import os
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

from leaf_id import LeafError, Snowflake, WorkerLease

URL, BIN = os.environ["LEAF_URL"], os.environ["LEAF_BIN"]


def pool(prefix, url=URL, worker=3, ttl="1m"):
    name = f"{prefix}-{os.getpid()}"
    layout = f"epoch=2026-01-01T00:00:00Z,worker={worker},sequence=4"
    subprocess.run([BIN, "worker", "pool", "create", name, "--layout", layout, "--max-ttl", ttl, "--server", url], check=True, stdout=subprocess.DEVNULL)
    return name


class Server:
    """A server with a data directory that outlives it."""

    def __init__(self, data, port="0"):
        self.log = tempfile.NamedTemporaryFile()
        env = {k: v for k, v in os.environ.items() if not k.startswith("LEAF_")}
        env.update(LEAF_RESP="off", LEAF_LOG_FORMAT="text", LEAF_ID_SPACE=data)
        self.process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:" + port, "--data", data], env=env, stderr=self.log)
        for _ in range(200):
            with open(self.log.name) as log:
                text = log.read()
            if "msg=serving" in text and "holding a worker ID" in text:
                self.url = text.split("url=")[1].split()[0]
                return
            time.sleep(0.05)
        self.kill()
        raise AssertionError(text)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Leases(unittest.TestCase):
    def test_lease(self):
        name = pool("py-lease", worker=1)
        a = WorkerLease([URL], name, ttl="30s", holder="a")
        b = WorkerLease(["http://127.0.0.1:1", URL], name, holder="b")
        self.assertNotEqual(a.worker, b.worker)
        with self.assertRaises(LeafError) as none_free:
            WorkerLease([URL], name)
        self.assertEqual(none_free.exception.reason, "NO_FREE_WORKER_ID")
        a.release(None)
        a.release(None)  # again
        WorkerLease([URL], name).release(None)
        b.release(None)
        with self.assertRaises(LeafError) as unknown:
            WorkerLease([URL], "py-typo")
        self.assertEqual((unknown.exception.status, unknown.exception.reason), (404, "UNKNOWN_POOL"))

    def test_many_generators(self):
        name = pool("py-many")
        generators = [Snowflake([URL], name) for _ in range(4)]
        seen = [[] for _ in range(8)]

        def take(i):
            seen[i] = [generators[i % 4].next() for _ in range(3000)]

        threads = [threading.Thread(target=take, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for g in generators:
            g.close()
        again = Snowflake([URL], name)
        every = [i for s in seen for i in s] + [again.next() for _ in range(3000)]
        again.close()
        self.assertEqual(len(set(every)), len(every))
        with self.assertRaises(LeafError):
            again.next()

    def test_clocks(self):
        """The date of the machine does not matter."""
        name, seen = pool("py-clocks", worker=1), []
        real = time.time
        for off in (-3600, 3600, 0):
            with unittest.mock.patch("time.time", lambda: real() + off), Snowflake([URL], name) as g:
                seen += [g.next() for _ in range(500)]
                parts = g.layout.decode(seen[-1])
                self.assertLess(abs(parts.time / 1000 - real()), 5)
                self.assertEqual(parts.worker, g.lease.worker)
        self.assertEqual(len(set(seen)), len(seen))

    def test_use(self):
        """A lease for another library."""
        with self.assertRaises(LeafError):
            WorkerLease([], "p")
        name = pool("py-use", worker=1)
        a, b = WorkerLease([URL], name, ttl="30s"), WorkerLease(URL, name)
        used = a.now()
        self.assertTrue(a.is_valid() and a.use(used) and b.use(b.limit - 1))
        self.assertFalse(b.use(b.limit) or b.use(b.limit - 1, b.limit) or a.use(a.floor - 1))
        self.assertNotIn(a.id, repr(a))
        a.seal()
        self.assertFalse(a.use(used) or a.is_valid())
        a.close()
        a.close()
        c = WorkerLease(URL, name)
        self.assertEqual(c.worker, a.worker)
        self.assertGreater(c.floor, used)
        b.close()
        c.close()

    def test_renews(self):
        g = Snowflake([URL], pool("py-renews"), ttl="2s")
        first, worker = g.lease.limit, g.lease.worker
        time.sleep(3)
        g.next()
        self.assertGreater(g.lease.limit, first)
        self.assertEqual(g.lease.worker, worker)
        g.close()

    def test_server_killed(self):
        """IDs go on without the server, up to the limit; and afterwards once it is back."""
        with tempfile.TemporaryDirectory() as data:
            server = Server(data)
            g = Snowflake([server.url], pool("py-killed", server.url), ttl="3s", timeout=1)
            seen, failed = [g.next()], 0
            server.kill()
            end = time.time() + 5
            while time.time() < end:
                try:
                    seen.append(g.next())
                except LeafError:
                    failed += 1
                time.sleep(0.005)
            self.assertGreater(len(seen), 200)
            self.assertGreater(failed, 0)
            again = Server(data, server.url.rsplit(":", 1)[1])
            seen += [g.next() for _ in range(100)]
            g.close()
            again.kill()
            self.assertEqual(len(set(seen)), len(seen))

    def test_fork(self):
        name = pool("py-fork", worker=2)
        g = Snowflake([URL], name)
        mine = [g.next() for _ in range(100)]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(write, " ".join(str(g.next()) for _ in range(100)).encode())
                g.close()
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as pipe:
            theirs = [int(i) for i in pipe.read().split()]
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        mine += [g.next() for _ in range(100)]
        g.close()
        self.assertEqual(len(theirs), 100)
        self.assertFalse(set(mine) & set(theirs))


if __name__ == "__main__":
    unittest.main()
