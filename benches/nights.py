"""What uploads and jobs cost after many nights, and after many datasets of which nothing is published.

`nights.py URL PID NIGHTS ROWS DATASETS [BEFORE]`: first uploads DATASETS tables of 50 rows, then NIGHTS tables of ROWS rows into one
population, each with people of its own, and publishes each of these, after BEFORE (0) nights that are there already. Rows are Adult's, drawn by chance, of which each value is that of another row
one time in sixteen. Costs are processor time of the process PID, user and system, over ten calls each; a job's last from its submission
to its end. With the peak of its resident memory. Ends with 1 when a night is not published.
"""

import gzip
import http.client
import json
import os
import random
import re
import sys
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
#: A cost is the mean of so many calls.
SPAN = 10
#: Nights and datasets up to which costs are printed.
POINTS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)


class Service:
    def __init__(self, url: str, pid: str) -> None:
        place = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(place.hostname, place.port)
        self.process = Path("/proc") / pid

    def send(self, method: str, path: str, kind: str, body: bytes) -> dict:
        self.connection.request(method, path, body, {"content-type": kind})
        answer = self.connection.getresponse()
        document = json.loads(answer.read())
        if answer.status not in (200, 201, 202):
            sys.exit(f"{path}: {answer.status} {document}")
        return document

    def upload(self, csv: bytes) -> tuple[str, float]:
        began = self.seconds()
        dataset = self.send("POST", "/v1/datasets?population=nights", "text/csv", csv)
        return dataset["id"], self.seconds() - began

    def publish(self, dataset: str) -> float:
        began = self.seconds()
        job = self.send("POST", "/v1/jobs?wait=60", "application/json", json.dumps(JOB | {"dataset": dataset}).encode())
        if job["status"] != "succeeded":
            sys.exit(f"{dataset}: {job}")
        return self.seconds() - began

    def seconds(self) -> float:
        fields = (self.process / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self) -> int:
        return int(re.search(r"VmHWM:\s+(\d+)", (self.process / "status").read_text())[1]) // 1024


class People:
    def __init__(self, first: int = 0) -> None:
        with gzip.open(Path(__file__).parent.parent / "examples/data/adult.csv.gz", "rt") as file:
            self.names, *self.adult = [line.rstrip("\n").split(",") for line in file]
        self.next = first

    def table(self, rows: int) -> bytes:
        chance = random.Random(self.next)
        lines = ["id," + ",".join(self.names)]
        for _ in range(rows):
            drawn = chance.choice(self.adult)
            cells = [chance.choice(self.adult)[at] if chance.randrange(16) == 0 else cell for at, cell in enumerate(drawn)]
            lines.append(f"p{self.next}," + ",".join(cells))
            self.next += 1
        return ("\n".join(lines) + "\n").encode()


def milliseconds(costs: list[float]) -> str:
    last = costs[-SPAN:]
    return f"{1000 * sum(last) / len(last):.0f} ms"


def define(service: Service) -> None:
    population = {"description": "people of the nights", "person": [{"key_system": "id", "columns": ["id"]}]}
    service.send("PUT", "/v1/populations/nights", "application/json", json.dumps(population).encode())


def main() -> None:
    url, pid, nights, rows, datasets = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    before = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    service, people = Service(url, pid), People(before * rows)
    define(service)
    for number in range(1, datasets + 1):
        service.upload(people.table(50))
        if number in POINTS or number == datasets:
            costs = [service.upload(people.table(rows))[1] for _ in range(SPAN)]
            print(f"after {number} datasets: upload {milliseconds(costs)}", flush=True)
    uploads, jobs = [], []
    for night in range(before + 1, before + nights + 1):
        dataset, cost = service.upload(people.table(rows))
        uploads.append(cost)
        jobs.append(service.publish(dataset))
        if night in POINTS or night == before + nights:
            print(f"night {night}: upload {milliseconds(uploads)}, job {milliseconds(jobs)}", flush=True)
    print(f"peak resident {service.peak()} MB")


if __name__ == "__main__":
    main()
