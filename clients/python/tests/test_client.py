"""What the scenarios leave out. LEAF_URL is a server with the tag "order"."""

import asyncio
import ctypes
import os
import pathlib
import signal
import tempfile
import threading
import unittest
import unittest.mock

from leaf_id import AsyncLeafClient, LeafClient, LeafError

URL = os.environ["LEAF_URL"]
fork_in_c = ctypes.PyDLL(None).fork


class Client(unittest.TestCase):
    def test_threads(self):
        """Threads of two programs take IDs and batches while processes fork."""
        seen = [[] for _ in range(8)]
        with LeafClient(URL, wait=20) as a, LeafClient([URL], wait=20) as b:

            def take(i):
                client = (a, b)[i % 2]
                for n in range(3000):
                    seen[i].append(client.next("order"))
                    if i > 5 and n % 10 == 0:
                        seen[i].extend(x for r in client.take("order", 17) for x in r)

            threads = [threading.Thread(target=take, args=(i,)) for i in range(8)]
            for t in threads:
                t.start()
            children = [self.fork(a) for _ in range(5)]
            for t in threads:
                t.join()
            for child in children:
                seen.append(child())
        every = [i for s in seen for i in s]
        self.assertEqual(len(every), 8 * 3000 + 2 * 300 * 17 + 5 * 50)
        self.assertEqual(len(set(every)), len(every))

    def test_fork_in_c(self):
        """A child of a fork that runs no hooks of Python, such as uWSGI's, takes IDs of its own, whatever other
        threads did at the fork."""
        with LeafClient(URL, wait=20) as client:
            seen = [client.next("order")]
            seen.extend(i for r in client.take("order", 20) for i in r)
            stock = client.stock("order")
            with client._lock, stock._lock, client._servers._lock:
                children = [self.fork(client, fork_in_c) for _ in range(2)]
            seen.extend(client.next("order") for _ in range(100))
            for child in children:
                seen.extend(child())
            self.assertEqual(len(seen), 221)
            self.assertEqual(len(set(seen)), 221)

    def test_fork_with_the_number_of_the_parent(self):
        """A child takes IDs of its own though it has its parent's number, in another PID namespace."""
        with LeafClient(URL, wait=20) as client:
            seen = [client.next("order")]
            with unittest.mock.patch("os.getpid", return_value=os.getpid()):
                child = self.fork(client)
            seen.extend(client.next("order") for _ in range(100))
            seen.extend(child())
            self.assertEqual(len(set(seen)), 151)

    def test_fork_in_c_and_connections(self):
        """Such a child shares no connection with its parent."""
        read, write = os.pipe()
        with LeafClient(URL) as client, os.fdopen(read) as pipe:
            (server,) = client._servers._all

            def ports():
                ids.next()
                return [connection.sock.getsockname()[1] for _, connection in server.idle]

            ids = client.ordered("segment", "order")
            (port,) = ports()
            child = fork_in_c()
            if child == 0:
                status = 1
                try:
                    signal.alarm(60)
                    os.write(write, repr(ports()).encode())
                    status = 0
                finally:
                    os._exit(status)
            os.close(write)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertNotIn(str(port), pipe.read())
            self.assertEqual(ports(), [port])

    def fork(self, client, fork=os.fork):
        """Has a child take 50 IDs, and returns how to get them."""
        read, write = os.pipe()
        child = fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)  # ends a child that hangs
                os.write(write, " ".join(str(client.next("order")) for _ in range(50)).encode())
                client.close()
                status = 0
            finally:
                os._exit(status)
        os.close(write)

        def ids():
            with os.fdopen(read) as pipe:
                got = [int(i) for i in pipe.read().split()]
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            return got

        return ids

    def test_asyncio(self):
        async def main():
            async with AsyncLeafClient(URL, wait=20) as client:
                got = await asyncio.gather(*(client.next("order") for _ in range(3000)), *(client.take("order", 50) for _ in range(50)))
                ids = got[:3000] + [i for ranges in got[3000:] for r in ranges for i in r]
                self.assertEqual(len(ids), 5500)
                self.assertEqual(len(set(ids)), 5500)
                self.assertGreaterEqual(client.stats()[0].issued, 5500)
                task = asyncio.create_task(client.take("order", 10_000_000))
                await asyncio.sleep(0)  # it has begun
                task.cancel()  # its caller gives up
                with self.assertRaises(asyncio.CancelledError):
                    await task
            with self.assertRaises(LeafError) as closed:
                await client.next("order")
            self.assertEqual(closed.exception.reason, "CLOSED")

        asyncio.run(main())

    def test_bad_options(self):
        for servers, options in (
            ("h", {}), ("ftp://h", {}), ("http://", {}), ("http://h/path", {}), ("http://a,http://b", {}), ("http://a:b@h", {}), ([], {}),
            ("http://x@h", {"token": "y"}), ("http://h", {"token": "y", "token_file": "z"}), ("http://h", {"max_stock": 0}),
            ("http://h", {"wait": -1}), ("http://h", {"hedge": -1}), ("http://h", {"call_timeout": 0}), (["http://x@h", "http://y@h"], {}),
        ):
            with self.subTest(servers=servers, options=options), self.assertRaises(LeafError) as bad:
                LeafClient(servers, **options)
            self.assertEqual(bad.exception.reason, "INVALID_ARGUMENT")
        LeafClient("leafs://to%2Fken@h1:8443,h2/")

    def test_token_file_and_observer(self):
        calls = []
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "token"
            with LeafClient(URL, token_file=file, on_call=calls.append) as client:
                ids = client.ordered("segment", "order")
                with self.assertRaises(LeafError) as missing:
                    ids.next()
                self.assertEqual(missing.exception.reason, "UNAVAILABLE")
                file.write_text("a token\n")
                self.assertIsInstance(ids.next(), int)
                with self.assertRaises(LeafError) as unknown:
                    client.ordered("segment", "nope").next()
        self.assertEqual((unknown.exception.reason, unknown.exception.status), ("UNKNOWN_TAG", 404))
        self.assertEqual([(c.procedure, c.error and c.error.reason) for c in calls], [("Take", "UNAVAILABLE"), ("Take", None), ("Take", "UNKNOWN_TAG")])
        self.assertTrue(all(URL.endswith(c.server) for c in calls))


if __name__ == "__main__":
    unittest.main()
