"""An hour in the life of a service, at a moderate rate, and its resident memory.

`soak.py URL PID MINUTES RATE`: so many tables of 200 rows a second, by four clients, each table with people of its own. A table is
uploaded, profiled and planned; its job is submitted and waited for; the release, its report and its parts are read, and the parts are
hashed; lists are read; two tables in three are purged, and one release in four is withdrawn. The memory of the process PID is read
from /proc each ten seconds. Prints a line for each twelfth of the time, then the slope of the second half by least squares. Ends with 1
when anything was refused, failed or lost.
"""

import hashlib
import http.client
import json
import random
import re
import sys
import threading
import time
import urllib.parse
from collections import Counter
from pathlib import Path

CLIENTS = 4
ROWS = 200
JOB = {
    "unlisted": "drop",
    "method": {
        "type": "versatile",
        "rules": ["age, area -> illness", "job -> income"],
        "default_guarantee": {"type": "l_diversity", "l": 2},
    },
}
KINDS = ("RssAnon", "RssFile", "Threads")


class Client:
    def __init__(self, url: str) -> None:
        place = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
        self.calls: Counter = Counter()

    def send(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        self.connection.request(method, path, body, {"content-type": kind} if body else {})
        answer = self.connection.getresponse()
        content = answer.read()
        self.calls[answer.status] += 1
        if answer.status not in (200, 201, 202):
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:500].decode()}")
        return content

    def document(self, method: str, path: str, document: dict | None = None) -> dict:
        return json.loads(self.send(method, path, json.dumps(document).encode() if document is not None else b""))

    def work(self, number: int) -> None:
        table, chance = table_of(number), random.Random(number)
        dataset = json.loads(self.send("POST", "/v1/datasets?population=soak&name=soak", table, "text/csv"))["id"]
        self.send("GET", f"/v1/datasets/{dataset}")
        job = JOB | {"dataset": dataset}
        plan = self.document("POST", "/v1/plans", job)
        if not plan["feasible"]:
            raise RuntimeError(f"no plan: {plan}")
        ended = self.document("POST", "/v1/jobs?wait=60", job)
        while ended["status"] in ("queued", "running"):
            ended = self.document("GET", f"/v1/jobs/{ended['id']}?wait=60")
        if ended["status"] != "succeeded":
            raise RuntimeError(f"no release: {ended}")
        release = f"/v1/releases/{ended['release']}"
        manifest = self.document("GET", release)
        self.send("GET", f"{release}/report")
        for part_table in manifest["tables"]:
            for part in part_table["parts"]:
                path = f"{release}/tables/{part_table['name']}/parts/{part['name']}"
                if hashlib.sha256(self.send("GET", path)).hexdigest() != part["sha256"]:
                    raise RuntimeError(f"{path}: other bytes than the manifest names")
                self.send("GET", f"{path}?format=parquet")
        for list_path in ("datasets", "jobs", "releases"):
            self.send("GET", f"/v1/{list_path}?limit=50")
        if chance.randrange(3):
            self.send("DELETE", f"/v1/datasets/{dataset}")
        if not chance.randrange(4):
            self.document("POST", f"{release}/withdraw", {"reason": "soak"})


def table_of(number: int) -> bytes:
    chance = random.Random(number)
    lines = ["person,age,area,job,illness,income"]
    for row in range(ROWS):
        age, area, job = 17 + chance.randrange(74), chance.randrange(100), chance.randrange(14)
        lines.append(f"p{number}-{row},{age},a{area},j{job},i{chance.randrange(30)},{chance.randrange(20)}000")
    return ("\n".join(lines) + "\n").encode()


class Run:
    def __init__(self, url: str, pid: str, minutes: float, rate: float) -> None:
        self.url, self.process, self.rate = url, Path("/proc") / pid, rate
        self.began = time.monotonic()
        self.end = self.began + 60 * minutes
        self.lock, self.next, self.done = threading.Lock(), 0, 0
        self.failures: list[str] = []
        self.calls: Counter = Counter()
        self.samples: list[tuple[float, dict[str, int]]] = []

    def client(self) -> None:
        client = Client(self.url)
        while not self.failures:
            with self.lock:
                number, self.next = self.next, self.next + 1
            at = self.began + number / self.rate
            if at >= self.end:
                break
            time.sleep(max(0, at - time.monotonic()))
            # a service that cannot keep pace is no reason to go on for ever
            if time.monotonic() >= self.end:
                break
            try:
                client.work(number)
            except Exception as error:
                self.failures.append(f"table {number}: {error!r}")
                break
            with self.lock:
                self.done += 1
        with self.lock:
            self.calls += client.calls

    def sample(self) -> None:
        status = (self.process / "status").read_text()
        figures = {kind: int(re.search(rf"{kind}:\s+(\d+)", status)[1]) for kind in KINDS}
        self.samples.append((time.monotonic() - self.began, figures))

    def watch(self) -> None:
        print("minute  tables  resident  of it anonymous  threads", flush=True)
        twelfth, line = (self.end - self.began) / 12, 0
        while (now := time.monotonic()) < self.end and not self.failures:
            self.sample()
            if now - self.began >= line * twelfth:
                self.print_line()
                line += 1
            time.sleep(min(10, max(0, self.end - now)))
        self.sample()
        self.print_line()

    def print_line(self) -> None:
        at, figures = self.samples[-1]
        anonymous, resident = figures["RssAnon"] / 1024, (figures["RssAnon"] + figures["RssFile"]) / 1024
        print(f"{at / 60:6.1f}  {self.done:6}  {resident:5.1f} MB  {anonymous:12.1f} MB  {figures['Threads']:7}", flush=True)

    def slope(self) -> float:
        """Megabytes an hour of anonymous memory in the second half."""
        half = [(at / 3600, figures["RssAnon"] / 1024) for at, figures in self.samples[len(self.samples) // 2 :]]
        mean_at, mean = (sum(values) / len(half) for values in zip(*half))
        spread = sum((at - mean_at) ** 2 for at, _ in half)
        return sum((at - mean_at) * (size - mean) for at, size in half) / spread if spread else 0.0


def main() -> None:
    url, pid, minutes, rate = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    people = {"description": "people of the soak", "person": [{"key_system": "id", "columns": ["person"]}]}
    Client(url).document("PUT", "/v1/populations/soak", people)
    run = Run(url, pid, minutes, rate)
    clients = [threading.Thread(target=run.client) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    run.watch()
    for client in clients:
        client.join()
    answers = ", ".join(f"{count} of {status}" for status, count in sorted(run.calls.items()))
    print(f"slope of the second half: {run.slope():+.1f} MB an hour; {run.done} tables; answers: {answers}")
    if run.failures:
        sys.exit("\n".join(run.failures))


main()
