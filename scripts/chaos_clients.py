"""Clients that publish through a gateway while something happens to what is behind it, and then look whether anything is lost.

`chaos_clients.py URL KEY_FILE CA_FILE FOLDER`: four clients upload tables of 100 rows, each with people of its own, and submit a job for
each, until FOLDER/stop exists. Each does what a client should: it sends an Idempotency-Key, and repeats what was refused with 429 or 503
or was cut off. Beside them one asks for a list five times a second and repeats nothing. Then each job must have ended with a release, whose
parts have the bytes that the manifest names, and there may be no other release. Prints what was answered, and writes FOLDER/summary.json. Ends with 1 when anything
was lost, doubled, unverified, or answered with another failure.
"""

import hashlib
import http.client
import json
import random
import ssl
import sys
import threading
import time
import urllib.parse
import uuid
from collections import Counter
from pathlib import Path

CLIENTS = 4
ROWS = 100
#: Seconds for which one call is repeated.
PATIENCE = 300
JOB = {
    "unlisted": "drop",
    "method": {
        "type": "versatile",
        "rules": ["age, area -> illness", "job -> income"],
        "default_guarantee": {"type": "l_diversity", "l": 2},
    },
}
#: Names what one run does, so that its keys and people are those of no other.
RUN = uuid.uuid4().hex[:12]
POPULATION = f"chaos-{RUN}"


class Caller:
    def __init__(self, url: str, key: str, ca: str) -> None:
        self.place = urllib.parse.urlsplit(url)
        self.headers = {"authorization": f"Bearer {key}"}
        self.trust = ssl.create_default_context(cafile=ca)
        self.connection: http.client.HTTPSConnection | None = None
        self.refusals: Counter = Counter()
        self.slowest = 0.0

    def once(self, method: str, path: str, body: bytes = b"", headers: dict | None = None, wait: float = 120) -> tuple[int, bytes, dict]:
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.place.hostname, self.place.port, timeout=wait, context=self.trust)
        began = time.monotonic()
        try:
            self.connection.request(method, self.place.path + path, body or None, self.headers | (headers or {}))
            answer = self.connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        except BaseException:
            self.connection.close()
            self.connection = None
            raise
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)

    def call(self, method: str, path: str, body: bytes = b"", headers: dict | None = None) -> bytes:
        """Repeats a call as long as that is what to do."""
        end, pause, why = time.monotonic() + PATIENCE, 1.0, ""
        while time.monotonic() < end:
            try:
                status, content, said = self.once(method, path, body, headers)
                if status in (200, 201, 202):
                    return content
                why = f"{status} {content[:300].decode(errors='replace')}"
                # a request whose key another one holds is asked for later, too
                if status not in (429, 503) and not (status == 409 and "retry-after" in said):
                    raise RuntimeError(f"{method} {path}: {why}")
                if "retry-after" not in said:
                    raise RuntimeError(f"{method} {path}: {status} without Retry-After")
                self.refusals[str(status)] += 1
                pause = min(float(said["retry-after"]), 2)
            except (OSError, http.client.HTTPException) as error:
                why = repr(error)
                self.refusals[type(error).__name__] += 1
            time.sleep(pause)
        raise RuntimeError(f"{method} {path}: in vain: {why}")

    def document(self, method: str, path: str, document: dict | None = None, key: str = "") -> dict:
        headers = {"content-type": "application/json"} if document is not None else {}
        if key:
            headers["idempotency-key"] = key
        return json.loads(self.call(method, path, json.dumps(document).encode() if document is not None else b"", headers))


def table_of(number: int) -> bytes:
    chance = random.Random(f"{RUN}{number}")
    lines = ["person,age,area,job,illness,income"]
    for row in range(ROWS):
        age, area, job = 17 + chance.randrange(74), chance.randrange(100), chance.randrange(14)
        lines.append(f"{RUN}-{number}-{row},{age},a{area},j{job},i{chance.randrange(30)},{chance.randrange(20)}000")
    return ("\n".join(lines) + "\n").encode()


class Run:
    def __init__(self, url: str, key: str, ca: str, folder: Path) -> None:
        self.access, self.folder = (url, key, ca), folder
        self.lock, self.next = threading.Lock(), 0
        self.jobs: list[str] = []
        self.failures: list[str] = []
        self.refusals: Counter = Counter()
        self.most_attempts = 0
        #: Of the one that repeats nothing: how often it asked, what it was answered, the longest time without a good answer.
        self.asked, self.odd, self.outage, self.slowest = 0, Counter(), 0.0, 0.0

    def stopping(self) -> bool:
        return (self.folder / "stop").exists() or bool(self.failures)

    def client(self) -> None:
        caller = Caller(*self.access)
        while not self.stopping():
            with self.lock:
                number, self.next = self.next, self.next + 1
            try:
                upload = {"content-type": "text/csv", "idempotency-key": f"{RUN}-upload-{number}"}
                dataset = json.loads(caller.call("POST", f"/v1/datasets?population={POPULATION}", table_of(number), upload))["id"]
                job = caller.document("POST", "/v1/jobs", JOB | {"dataset": dataset}, f"{RUN}-job-{number}")
            except Exception as error:
                self.failures.append(f"table {number}: {error!r}")
                break
            with self.lock:
                self.jobs.append(job["id"])
            time.sleep(0.5)
        with self.lock:
            self.refusals += caller.refusals

    def watcher(self) -> None:
        caller, good = Caller(*self.access), time.monotonic()
        while not self.stopping():
            self.asked += 1
            try:
                status, _, _ = caller.once("GET", "/v1/releases?limit=1", wait=60)
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
            now = time.monotonic()
            self.outage = max(self.outage, now - good)
            if status == 200:
                good = now
            else:
                self.odd[str(status)] += 1
            time.sleep(0.2)
        self.slowest = caller.slowest

    def judge(self) -> None:
        caller = Caller(*self.access)
        releases = set()
        for job in self.jobs:
            ended = caller.document("GET", f"/v1/jobs/{job}?wait=60")
            end = time.monotonic() + PATIENCE
            while ended["status"] in ("queued", "running") and time.monotonic() < end:
                ended = caller.document("GET", f"/v1/jobs/{job}?wait=60")
            if ended["status"] != "succeeded":
                self.failures.append(f"job {job}: {ended['status']}: {ended.get('problem')}")
                continue
            releases.add(ended["release"])
            self.most_attempts = max(self.most_attempts, ended["attempt"])
            manifest = caller.document("GET", f"/v1/releases/{ended['release']}")
            for table in manifest["tables"]:
                for part in table["parts"]:
                    path = f"/v1/releases/{ended['release']}/tables/{table['name']}/parts/{part['name']}"
                    if hashlib.sha256(caller.call("GET", path)).hexdigest() != part["sha256"]:
                        self.failures.append(f"{path}: other bytes than the manifest names")
        if len(releases) != len(self.jobs):
            self.failures.append(f"{len(releases)} releases of {len(self.jobs)} jobs")
        datasets = sum(item["population"] == POPULATION for item in self.items(caller, "/v1/datasets"))
        if datasets != len(self.jobs):
            self.failures.append(f"{datasets} datasets of {len(self.jobs)} uploads")

    def items(self, caller: Caller, path: str) -> list[dict]:
        items, cursor = [], ""
        while cursor is not None:
            page = caller.document("GET", f"{path}?limit=100{cursor and '&cursor=' + cursor}")
            items, cursor = items + page["items"], page["next"]
        return items


def main() -> None:
    url, key_file, ca, folder = sys.argv[1:5]
    run = Run(url, Path(key_file).read_text().strip(), ca, Path(folder))
    key = {"key_system": f"id-{RUN}", "columns": ["person"]}
    people = {"description": "people of the chaos", "person": [key]}
    caller = Caller(*run.access)
    if others := [item["name"] for item in run.items(caller, "/v1/populations")]:
        people |= {"disjoint_from": others, "reason": "made up"}
    caller.document("PUT", f"/v1/populations/{POPULATION}", people)
    threads = [threading.Thread(target=run.client) for _ in range(CLIENTS)] + [threading.Thread(target=run.watcher)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not run.failures:
        run.judge()
    repeated = ", ".join(f"{count} of {what}" for what, count in sorted(run.refusals.items())) or "nothing"
    odd = ", ".join(f"{count} of {what}" for what, count in sorted(run.odd.items())) or "nothing"
    print(f"    {len(run.jobs)} jobs, each with one release that has its bytes; repeated: {repeated}")
    print(f"    asked {run.asked} times meanwhile: other than 200: {odd}; slowest {run.slowest:.1f} s; longest without 200: {run.outage:.1f} s")
    summary = {"jobs": len(run.jobs), "most_attempts": run.most_attempts, "longest_without": run.outage}
    (run.folder / "summary.json").write_text(json.dumps(summary))
    if run.failures or not run.jobs:
        sys.exit("\n".join(run.failures) or "no job was submitted")


main()
