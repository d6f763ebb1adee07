"""The scenarios of all clients, against real servers: LEAF_SCENARIOS names the file, LEAF_LAB the program
that starts and harms the servers."""

import asyncio
import atexit
import json
import os
import ssl
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from leaf_id import AsyncLeafClient, LeafClient, LeafError, Snowflake

with open(os.environ["LEAF_SCENARIOS"]) as file:
    FILE = json.load(file)
ASYNC = {"prefetch", "outage budget", "batches", "answers lost", "unknown tag", "shutdown", "token refused", "periods", "forms"}  # with asyncio, too
lab = subprocess.Popen([os.environ["LEAF_LAB"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
URL = lab.stdout.readline().strip()


@atexit.register
def end():
    lab.stdin.close()
    lab.wait()
    lab.stdout.close()


def call(method, path):
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, method=method)) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as err:
        raise AssertionError(f"{path}: {err}: {err.read()}") from None


class Program:
    """A client of a scenario, whatever it is made of."""

    def __init__(self, scenario, world, asynchronous):
        given = {**FILE["options"], **scenario.get("options", {})}
        seconds = {k: given[k] / 1000 for k in ("outage_budget", "wait", "call_timeout", "hedge") if k in given}
        token = {"all": world.get("token"), "weak": world.get("weak_token")}.get(scenario.get("token"))
        context = ssl.create_default_context(cafile=world["cert_file"]) if "cert_file" in world and scenario.get("trust") != "none" else None
        self.kind, self.loop = scenario.get("kind", "stock"), None
        if self.kind == "lease":
            timeout = {"timeout": seconds["call_timeout"]} if "call_timeout" in seconds else {}
            ttl = {"ttl": f"{given['ttl'] // 1000}s"} if "ttl" in given else {}
            self.ids = Snowflake(world["url"], "order", token=token, context=context, start_wait=5, wait=seconds["wait"], **timeout, **ttl)
            return
        options = dict(seconds, token=token, context=context, **{k: given[k] for k in ("max_stock",) if k in given})
        if asynchronous:
            self.loop = asyncio.new_event_loop()
            self.client = AsyncLeafClient(world["url"], **options)
            return
        self.client = LeafClient(world["url"], **options)
        self.ids = self.client.ordered("segment", "order") if self.kind == "ordered" else self.client.tag("order")

    def issue(self, n, period):
        """Makes one call. Returns the numbers and their period."""
        given = {"period": period} if period else {}
        got = self.client.issue("order", n, **given)
        got = got if self.loop is None else self.loop.run_until_complete(got)
        return [i for r in got.ranges for i in r], got.period

    def take(self, n):
        if self.loop is None:
            return [self.ids.next() for _ in range(n)]

        async def take():
            return [await self.client.next("order") for _ in range(n)]

        return self.loop.run_until_complete(take())

    def batch(self, n):
        if self.kind == "lease":
            return self.ids.take(n)
        ranges = self.ids.take(n) if self.loop is None else self.loop.run_until_complete(self.client.take("order", n))
        return [i for r in ranges for i in r]

    def stats(self):
        return next(s for s in self.client.stats() if s.tag == "order")

    def close(self):
        if self.loop is None:
            (self.ids if self.kind == "lease" else self.client).close()
        elif not self.loop.is_closed():
            self.loop.run_until_complete(self.client.close())


class Run:
    """One scenario: its clients by name, and all IDs that they gave."""

    def __init__(self, test, scenario, asynchronous):
        self.test, self.scenario, self.asynchronous = test, scenario, asynchronous
        self.world = call("POST", "/worlds?" + scenario["world"])
        self.programs, self.seen, self.latest = {}, set(), []

    def program(self, name):
        if name not in self.programs:
            self.programs[name] = Program(self.scenario, self.world, self.asynchronous)
        return self.programs[name]

    def add(self, ids, period=""):
        before = len(self.seen)
        self.seen.update((period, i) for i in ids)
        self.test.assertEqual(len(self.seen), before + len(ids), "an ID came twice")
        self.latest = ids

    def reason(self, name, period=""):
        try:
            self.take(name, 1, period)
        except LeafError as err:
            return err.reason
        return None

    def poll(self, what, ms, check):
        end = time.monotonic() + ms / 1000
        while not check():
            self.test.assertLess(time.monotonic(), end, what)
            time.sleep(0.005)

    def take(self, name, n, period=""):
        self.batch(name, n, period) if self.scenario.get("kind") == "issue" else self.add(self.program(name).take(n))

    def batch(self, name, n, period=""):
        if self.scenario.get("kind") != "issue":
            got, of = self.program(name).batch(n), ""
        else:
            got, of = self.program(name).issue(n, period)
            present = time.strftime("%Y-01-01", time.gmtime()) if "period=year" in self.scenario["world"] else ""
            self.test.assertEqual(of, period or present)
        self.test.assertEqual(len(got), n)
        self.add(got, of)

    def is_(self, name, n, period=""):
        self.take(name, 1, period)
        self.test.assertEqual(self.latest, [n])

    def text(self, name, text):
        program = self.program(name)
        got = program.client.issue("order", len(text.split()), form=True)
        got = got if program.loop is None else program.loop.run_until_complete(got)
        self.test.assertEqual((got.texts, got.ranges), (text.split(), []))

    def drain(self, name, reason):
        end = None
        while end is None:
            end = self.reason(name)
            if self.scenario.get("kind") == "lease":
                time.sleep(0.001)
        self.test.assertEqual(end, reason)

    def recover(self, name, ms):
        def check():
            reason = self.reason(name)
            self.test.assertIn(reason, ("EXHAUSTED", "NO_WORKER_ID", None))
            return reason is None

        self.poll("calls still fail", ms, check)

    def stock(self, name, n):
        self.poll(f"no stock of {n}", 20000, lambda: self.program(name).stats().stock >= n)

    def stock_at_most(self, name, n):
        self.test.assertLessEqual(self.program(name).stats().stock, n)

    def granted_at_most(self, name, n):
        self.test.assertLessEqual(self.program(name).stats().granted, n)

    def harm(self, name, what):
        call("POST", f"/worlds/{self.world['world']}/{what}")

    def calls(self, name, n):
        self.test.assertLessEqual(sum(call("GET", f"/worlds/{self.world['world']}/calls")), n)

    def increasing(self, name, yes):
        self.test.assertEqual(self.latest, sorted(self.latest))

    def pass_(self, name, ms):
        time.sleep(ms / 1000)

    def freeze(self, name, ms):
        call("POST", f"/freezes?pid={os.getpid()}&ms={ms}")

    def close(self, name, which):
        self.program(which).close()

    def fork(self, name, n):
        """A child takes n IDs."""
        program = self.program(name)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(write, json.dumps(program.take(n)).encode())
                program.close()
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as pipe:
            ids = json.load(pipe)
        self.test.assertEqual(os.waitpid(child, 0)[1], 0)
        self.test.assertEqual(len(ids), n)
        self.add(ids)

    def step(self, step):
        name, begun = step.get("by", "a"), time.monotonic()
        period = {"period": step["period"]} if "period" in step else {}
        if "fails" in step and "batch" in step:
            with self.test.assertRaises(LeafError) as failed:
                self.batch(name, step["batch"])
            self.test.assertEqual(failed.exception.reason, step["fails"])
        elif "fails" in step:
            self.test.assertEqual(self.reason(name, **period), step["fails"])
        else:
            (kind,) = set(step) - {"by", "within", "period"}
            getattr(self, {"is": "is_", "pass": "pass_"}.get(kind, kind))(name, step[kind], **period)
        self.test.assertLess((time.monotonic() - begun) * 1000, step.get("within", 1e9))

    def end(self):
        for program in self.programs.values():
            program.close()
            if program.loop is not None:
                program.loop.close()
        call("DELETE", f"/worlds/{self.world['world']}")


class Scenarios(unittest.TestCase):
    def run_scenario(self, scenario, asynchronous):
        run = Run(self, scenario, asynchronous)
        try:
            for i, step in enumerate(scenario["steps"]):
                try:
                    run.step(step)
                except Exception as err:
                    raise AssertionError(f"step {i + 1}, {step}: {err!r}") from err
        finally:
            run.end()


def add(scenario, asynchronous):
    name = "test_" + scenario["name"].replace(" ", "_") + ("_with_asyncio" if asynchronous else "")
    setattr(Scenarios, name, lambda self: self.run_scenario(scenario, asynchronous))


for scenario in FILE["scenarios"]:
    if "python" in scenario.get("only", ["python"]):
        add(scenario, False)
        if scenario["name"] in ASYNC:
            add(scenario, True)


if __name__ == "__main__":
    unittest.main()
