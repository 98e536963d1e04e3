"""Uploads so many nights into one series, each with people of its own, publishes each, and says what nights cost.

`nights.py URL NIGHTS ROWS PID`: rows are Adult's, drawn by chance, of which each value is that of another row one time in sixteen. Times
are of the calls: an upload until its answer, and a job from its submission to its end. With the peak of resident memory of the process
PID. Ends with 1 when a night is not published.
"""

import gzip
import http.client
import json
import random
import re
import statistics
import sys
import time
import urllib.parse
from pathlib import Path

JOB = {
    "unlisted": "drop",
    "method": {
        "type": "versatile",
        "rules": ["age, sex, race -> occupation", "education, workclass -> marital-status"],
        "default_guarantee": {"type": "l_diversity", "l": 2},
    },
}
#: Medians are over so many nights.
SPAN = 10


def table(adult: list[list[str]], names: list[str], night: int, rows: int) -> bytes:
    chance = random.Random(night)
    lines = ["id," + ",".join(names)]
    for row in range(rows):
        drawn = chance.choice(adult)
        cells = [chance.choice(adult)[at] if chance.randrange(16) == 0 else cell for at, cell in enumerate(drawn)]
        lines.append(f"n{night}r{row}," + ",".join(cells))
    return ("\n".join(lines) + "\n").encode()


class Service:
    def __init__(self, url: str) -> None:
        place = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(place.hostname, place.port)

    def post(self, path: str, kind: str, body: bytes) -> dict:
        self.connection.request("POST", path, body, {"content-type": kind})
        answer = self.connection.getresponse()
        document = json.loads(answer.read())
        if answer.status not in (200, 201, 202):
            sys.exit(f"{path}: {answer.status} {document}")
        return document


def main() -> None:
    url, nights, rows, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    with gzip.open(Path(__file__).parent.parent / "examples/data/adult.csv.gz", "rt") as file:
        names, *adult = [line.rstrip("\n").split(",") for line in file]
    service = Service(url)
    uploads, jobs = [], []
    for night in range(1, nights + 1):
        csv = table(adult, names, night, rows)
        began = time.perf_counter()
        dataset = service.post("/v1/datasets?series=nights&record_key=id", "text/csv", csv)
        uploads.append(time.perf_counter() - began)
        began = time.perf_counter()
        job = service.post("/v1/jobs?wait=60", "application/json", json.dumps(JOB | {"dataset": dataset["id"]}).encode())
        jobs.append(time.perf_counter() - began)
        if job["status"] != "succeeded":
            sys.exit(f"night {night}: {job}")
    for until in sorted({min(2 * SPAN, nights), nights}):
        ms = [1000 * statistics.median(times[max(0, until - SPAN) : until]) for times in (uploads, jobs)]
        print(f"up to night {until}: upload {ms[0]:.0f} ms, job {ms[1]:.0f} ms")
    status = Path(f"/proc/{pid}/status").read_text()
    print(f"peak resident {int(re.search(r'VmHWM:\s+(\d+)', status)[1]) // 1024} MB")


main()
