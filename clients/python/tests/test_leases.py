"""Runs against the server at LEAF_URL, and against servers of its own made from LEAF_BIN."""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
import traceback
import unittest
import unittest.mock
import urllib.request

from leaf_id import LeafError, Snowflake, WorkerLease

URL, BIN = os.environ["LEAF_URL"], os.environ["LEAF_BIN"]


def pool(prefix, url=URL, worker=3, ttl="1m"):
    name = f"{prefix}-{os.getpid()}"
    layout = f"epoch=2026-01-01T00:00:00Z,worker={worker},sequence=4"
    subprocess.run([BIN, "worker", "pool", "create", name, "--layout", layout, "--max-ttl", ttl, "--server", url], check=True, stdout=subprocess.DEVNULL)
    return name


def lose(lease):
    """Has the registry forget the lease."""
    path = f"/v1/workers/leases/{lease.id}?used=none"
    urllib.request.urlopen(urllib.request.Request(URL + path, method="DELETE")).close()


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


class Child:
    """A child of a fork, which runs a function and passes lines on to its parent."""

    def __init__(self, test, run, fork=os.fork):
        self.test = test
        read, write = os.pipe()
        self.process = fork()
        if self.process == 0:
            status = 1
            try:
                signal.alarm(60)  # ends a child that hangs
                run(lambda text: os.write(write, (text + "\n").encode()))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(write)
        self.lines = os.fdopen(read)

    def __enter__(self):
        return self

    def line(self):
        return self.lines.readline().rstrip()

    def __exit__(self, *_):
        self.lines.close()
        self.test.assertEqual(os.waitpid(self.process, 0)[1], 0)


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

    def test_lost_lease_without_threads(self):
        """A lost lease is replaced once a thread to renew the next one starts. The claims before give theirs back."""
        name, real, failures = pool("py-threads", worker=1), threading.Thread.start, []

        def start(thread):
            if thread.name == "leaf-lease" and len(failures) < 3:
                failures.append(thread)
                raise RuntimeError("can't start new thread")
            real(thread)

        with contextlib.closing(WorkerLease(URL, name)), unittest.mock.patch("threading.Thread.start", start):
            with self.assertRaises(RuntimeError):
                WorkerLease(URL, name)
            failures.clear()
            with self.assertRaises(RuntimeError):
                Snowflake(URL, name, start_wait=0)
            failures[:] = [None] * 3
            with Snowflake(URL, name, ttl="2s", start_wait=0, wait=20) as g:
                first = g.lease.id
                failures.clear()
                lose(g.lease)
                end = time.monotonic() + 20
                while g.lease.id == first and time.monotonic() < end:
                    g.next()
                    time.sleep(0.01)
                self.assertNotEqual(g.lease.id, first)
                self.assertEqual(len(failures), 3)
                g.next()

    def test_failed_renewal(self):
        """A renewal is tried again whatever it fails with."""
        failures, real = [], WorkerLease._call

        def fail_once(lease, procedure, *args):
            if procedure == "RenewLease" and not failures:
                failures.append(procedure)
                raise RuntimeError("x")
            return real(lease, procedure, *args)

        with unittest.mock.patch.object(WorkerLease, "_call", fail_once), Snowflake(URL, pool("py-renewal"), ttl="2s") as g:
            first, end = g.lease, time.monotonic() + 20
            limit = first.limit
            while g.lease.limit == limit and time.monotonic() < end:
                time.sleep(0.01)
            self.assertGreater(g.lease.limit, limit)
            self.assertEqual((g.lease, len(failures)), (first, 1))

    def test_fork_closed_within_claim(self):
        """A child that closes its generator while it claims a lease leaves no worker ID taken."""
        name, parent, claimed = pool("py-fork-close", worker=1), os.getpid(), threading.Event()

        def slow(call):
            if os.getpid() != parent:
                claimed.set()
                time.sleep(0.5)

        def take(say):
            try:
                g.next()
            except LeafError as err:
                say(err.reason)
            claimed.wait()
            g.close()

        g = Snowflake(URL, name, wait=0.05, on_call=slow)
        with Child(self, take) as child:
            self.assertEqual(child.line(), "NO_WORKER_ID")
        WorkerLease(URL, name).close()
        g.close()

    def test_fork(self):
        name = pool("py-fork", worker=2)
        g = Snowflake([URL], name, wait=20)
        mine = [g.next() for _ in range(100)]

        def take(say):
            say(" ".join(str(g.next()) for _ in range(100)))
            g.close()

        with Child(self, take) as child:
            theirs = [int(i) for i in child.line().split()]
        mine += [g.next() for _ in range(100)]
        g.close()
        self.assertEqual(len(theirs), 100)
        self.assertFalse(set(mine) & set(theirs))

    def test_fork_in_c(self):
        """A child of a fork that runs no hooks of Python claims a lease of its own, and leaves its parent's alone."""
        fork = ctypes.PyDLL(None).fork
        with Snowflake([URL], pool("py-fork-c", worker=2), wait=20) as g:
            mine = [g.next() for _ in range(100)]

            def take(say):
                say(" ".join(str(g.next()) for _ in range(100)))
                g.close()

            with g._lock, Child(self, lambda _: g.close(), fork):
                pass
            with g._lock:
                child = Child(self, take, fork)
            with child:
                mine += [g.next() for _ in range(100)]
                theirs = [int(i) for i in child.line().split()]
            self.assertEqual((len(theirs), len(set(mine + theirs))), (100, 300))
            self.assertNotEqual(g.layout.decode(theirs[0]).worker, g.lease.worker)

    def test_fork_without_free_worker_id(self):
        """Calls of a child wait, and fail as those of its parent would. They all share one claim at a time."""
        name, calls = pool("py-fork-full", worker=1), []
        g, other = Snowflake([URL], name, wait=2, on_call=calls.append), WorkerLease([URL], name)
        g.next()

        def take(say):
            errors = []

            def fails():
                try:
                    g.next()
                except LeafError as err:
                    errors.append(f"{err.reason}/{err.__cause__.reason}")

            calls.clear()
            threads = [threading.Thread(target=fails) for _ in range(20)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            say(f"{len(errors)} {set(errors)} {len(calls) < len(errors)}")
            while True:
                try:
                    made = g.layout.decode(g.next()).worker
                    break
                except LeafError as err:
                    assert err.reason == "NO_WORKER_ID", err
            say(f"{made} {g.lease.worker}")
            g.close()

        with Child(self, take) as child:
            self.assertEqual(child.line(), "20 {'NO_WORKER_ID/NO_FREE_WORKER_ID'} True")
            other.close()
            self.assertEqual(child.line(), f"{other.worker} {other.worker}")
        g.close()

    def test_fork_with_silent_server(self):
        """A call of a child waits no longer than any other for a server that does not answer."""
        with tempfile.TemporaryDirectory() as data:
            server, calls = Server(data), []
            g = Snowflake([server.url], pool("py-fork-silent", server.url), wait=0.2, timeout=20, on_call=calls.append)

            def take(say):
                calls.clear()
                for call in (g.next, lambda: g.lease):
                    try:
                        call()
                    except LeafError as err:
                        say(f"{err.reason} {len(calls)}")
                while g._lease is None:
                    time.sleep(0.01)
                g.next()
                say("done")
                g.close()

            server.process.send_signal(signal.SIGSTOP)
            try:
                with Child(self, take) as child:
                    self.assertEqual(child.line(), "NO_WORKER_ID 0")
                    self.assertEqual(child.line(), "NO_WORKER_ID 0")
                    server.process.send_signal(signal.SIGCONT)
                    self.assertEqual(child.line(), "done")
                g.close()
            finally:
                server.kill()

    def test_fork_within_use(self):
        """A child may ask for its parent's lease, whatever other threads do at the fork."""
        lease = WorkerLease([URL], pool("py-fork-use"))

        def take(say):
            say(str(lease.use(lease.now())))
            lease.seal()
            lease.close()

        with lease._lock, Child(self, take) as child:
            self.assertEqual(child.line(), "False")
        self.assertTrue(lease.use(lease.now()))
        lease.close()


if __name__ == "__main__":
    unittest.main()
