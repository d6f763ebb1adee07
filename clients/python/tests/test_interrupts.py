"""Exceptions of signal handlers, such as KeyboardInterrupt, at every step of the code that issues IDs."""

import signal
import sys
import threading
import time
import unittest
import unittest.mock

from leaf_id import Layout, LeafClient, LeafError
from leaf_id._snowflake import Snowflake
from leaf_id._stock import Grant, Stock, StockOptions


class Interrupted(BaseException):
    pass


def interrupted(at, names, run):
    """Calls run, and raises in place of the at-th instruction of the functions with these names. Reports whether it did."""
    left = at

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_name not in names or not frame.f_code.co_filename.endswith(("_client.py", "_stock.py", "_snowflake.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        run()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


class Source:
    """Grants IDs from 100 on once it is open, and takes IDs back."""

    def __init__(self):
        self.returned, self.open = [], threading.Event()

    def advance(self, tag, n):
        self.open.wait()
        return Grant(100, 110, 10, self, "")

    def give_back(self, tag, last, start):
        self.returned.extend(range(start, last.end))


class Lease:
    """A lease of a worker ID from 500 ms on, at 1000 ms."""

    floor, limit, layout = 500, 10_000, Layout(0, 1, 20, 4, 2)

    def __init__(self, worker):
        self.worker = worker

    def now(self):
        return 1000

    def use(self, time, last):
        return True


class Interrupts(unittest.TestCase):
    def test_stock(self):
        names = {"_pop", "_look", "_serve", "_affords", "_size", "_stock", "_issued", "_recent", "_finish", "_fail_waiters", "add"}
        for starts in ((100, 300, 200), (200, 204, 100)):
            for calls in (self.single_calls, self.batches, self.batches_and_close):
                at = 1
                while self.interrupt(at, names, starts, calls):
                    at += 1
                self.assertGreater(at, 100)

    def interrupt(self, at, names, starts, calls):
        source, seen = Source(), []
        stock = Stock("order", StockOptions(600, 1000, 1, 1), source, lambda: None)
        grants = [Grant(start, start + 4, 4, source, "") for start in starts]
        stock._refilling = True  # so that it calls no server
        stock._grants, stock._step, stock._granted = 3, 4, 12
        stock._queue.extend(grants)
        with self.subTest(at=at, starts=starts, calls=calls.__name__):
            done = interrupted(at, names, lambda: calls(stock, seen))
            stats = stock.stats()
            self.assertTrue(0 <= stats.stock <= 12 - len(seen) and stats.issued >= len(seen), stats)
            for _ in range(20):
                got = stock.try_next()
                if got is not None:
                    seen.append(got)
            granted = {i for g in grants for i in range(g.start, g.end)}
            self.assertEqual(len(set(seen)), len(seen))
            self.assertLessEqual(set(seen), granted - set(source.returned))
            if not stock._closing:
                self.assertGreaterEqual(len(seen), 4 if done else 12)  # it has lost a range and a batch at most
        return done

    def single_calls(self, stock, seen):
        for _ in range(12):
            seen.append(stock.try_next())

    def batches(self, stock, seen):
        for n in (3, 3, 2, 4):
            seen.extend(i for r in stock.take(n) for i in r)

    def batches_and_close(self, stock, seen):
        seen.extend(i for r in stock.take(3) for i in r)
        stock._refilling = False
        stock.close()

    def test_waiting_call(self):
        """A call that an interruption ends takes no IDs any more."""

        def interrupt(*_):
            raise Interrupted

        source = Source()
        stock = Stock("order", StockOptions(600, 1000, 20, 1), source, lambda: None)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            self.assertRaises(Interrupted, stock.take, 3)
        finally:
            signal.signal(signal.SIGALRM, before)
        source.open.set()
        self.assertEqual(stock.next(), 100)
        stock.close()

    def test_refill(self):
        """Calls go on after an interruption of one that starts a refill."""
        source = Source()
        source.open.set()
        stock = Stock("order", StockOptions(600, 1000, 2, 1), source, lambda: None)
        with unittest.mock.patch("threading.Thread.start", side_effect=Interrupted):
            self.assertRaises(Interrupted, stock.next)
        self.assertEqual(stock.next(), 100)
        stock.close()

    def test_refill_that_is_ended(self):
        """A refill goes on after whatever an observer raises, and callers learn why a thread cannot start."""
        source = Source()
        source.open.set()
        advance = source.advance
        with unittest.mock.patch.object(source, "advance", side_effect=[SystemExit(), *(advance("order", 0) for _ in range(4))]):
            stock = Stock("order", StockOptions(600, 1000, 20, 1), source, lambda: None)
            self.assertEqual(stock.next(), 100)
            stock.close()
        stock = Stock("order", StockOptions(600, 1000, 0.1, 1), source, lambda: None)
        with unittest.mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
            with self.assertRaises(LeafError) as failed:
                stock.next()
        self.assertIn("can't start new thread", str(failed.exception))
        time.sleep(0.2)  # the pause after a failure
        self.assertEqual(stock.next(), 100)
        stock.close()

    def test_unknown_tag(self):
        """A tag that was unknown is asked for again, although a call has been interrupted there."""
        at, done = 1, True
        while done:
            with LeafClient("http://h") as client:
                ended = client.stock("order")
                client._unknown["order"] = 0
                done = interrupted(at, {"_known"}, lambda c=client: c.stock("order"))
                with self.subTest(at=at):
                    self.assertIsNot(client.stock("order"), ended)
            at += 1
        self.assertGreater(at, 10)

    def test_snowflake(self):
        """Another lease takes the place of the present one."""
        at = 1
        while self.interrupt_snowflake(at):
            at += 1
        self.assertGreater(at, 100)

    def interrupt_snowflake(self, at):
        ids = Snowflake.__new__(Snowflake)
        ids._closed, ids._wait, ids._start_claim = False, 0.001, lambda: None
        ids._begin()
        ids._take(Lease(1))
        seen = [ids.next() for _ in range(9)]

        def replace():
            ids._take(Lease(2))
            for _ in range(9):
                seen.append(ids.next())

        done = interrupted(at, {"_take", "_try", "_candidate"}, replace)
        if ids._lease is not None:
            seen.extend(ids.next() for _ in range(9))
        with self.subTest(at=at):
            self.assertEqual(len(set(seen)), len(seen))
        return done


if __name__ == "__main__":
    unittest.main()
