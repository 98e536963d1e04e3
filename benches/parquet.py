"""What a large table of Parquet costs through the service: its upload, a job, and the download of every part as Parquet.

`parquet.py URL PID TABLE SPEC`: uploads TABLE, publishes it by SPEC and downloads the parts. Costs are processor time of the process PID,
user and system, its children included, and seconds on the clock. Ends with 1 when the table is not published.
"""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PIECE = 1 << 20


class Meter:
    """Prints what a step costs the process."""

    def __init__(self, pid: str) -> None:
        self.stat = Path("/proc", pid, "stat")
        self.total = 0.0

    def used(self) -> float:
        fields = self.stat.read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS

    def measure(self, step: str, call):
        used, began = self.used(), time.monotonic()
        found = call()
        seconds, used = time.monotonic() - began, self.used() - used
        self.total += used
        print(f"{step}: {used:.2f} s, {seconds:.2f} s on the clock")
        return found


def main() -> None:
    url, pid, table, spec = sys.argv[1], sys.argv[2], Path(sys.argv[3]), json.loads(Path(sys.argv[4]).read_text())
    meter = Meter(pid)

    def send(path: str, kind: str, body, length: int) -> dict:
        headers = {"Content-Type": kind, "Content-Length": str(length)}
        request = urllib.request.Request(url + path, data=body, headers=headers, method="POST")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def upload() -> dict:
        with table.open("rb") as rows:
            return send("/v1/datasets", "application/vnd.apache.parquet", rows, table.stat().st_size)

    def get(path: str) -> dict:
        with urllib.request.urlopen(url + path) as answer:
            return json.load(answer)

    def publish(dataset: str) -> dict:
        body = json.dumps({"dataset": dataset, **spec}).encode()
        job = send("/v1/jobs?wait=60", "application/json", body, len(body))
        while job["status"] in ("queued", "running"):
            job = get(f"/v1/jobs/{job['id']}?wait=60")
        return job

    def download(release: str, name: str) -> int:
        with urllib.request.urlopen(f"{url}/v1/releases/{release}/{name}?format=parquet") as answer:
            return sum(len(piece) for piece in iter(lambda: answer.read(PIECE), b""))

    dataset = meter.measure("upload", upload)
    job = meter.measure("job", lambda: publish(dataset["id"]))
    if job["status"] != "succeeded":
        sys.exit(json.dumps(job))
    manifest = get(f"/v1/releases/{job['release']}")
    for of in manifest["tables"]:
        for part in of["parts"]:
            name = f"tables/{of['name']}/parts/{part['name']}"
            size = meter.measure(f"download of {name}", lambda name=name: download(job["release"], name))
            print(f"{name}: {size / 1e6:.2f} MB, {8 * size / dataset['rows']:.2f} bits a row")
    status = Path("/proc", pid, "status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"all: {meter.total:.2f} s; peak resident {peak // 1024} MB")


if __name__ == "__main__":
    main()
