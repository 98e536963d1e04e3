"""Every line of "In one run" of BENCHMARKS.md: whole processes against their yardsticks, measured in turn, and written to that page.

`table.py GUARDIAN CENSUS COPY [--large] [--write]`: publishes by the jobs of benches/jobs.json, each in turn with a copy of the same table by
the csv crate, the medians of ROUNDS; then calls on small tables through the service, with both stores. `--large` adds ten million rows, and
Parquet through the service against DuckDB. `--write` writes the section.
"""

import gzip
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "BENCHMARKS.md"
ADULT = HERE.parent / "examples/data/adult.csv.gz"
ROUNDS = 3
#: Of the census; aims are of a project whose releases had neither exposures nor evidence.
CENSUS_JOBS = {
    "anatomy": "1.1 copies",
    "three guarded tables": "1.6 copies",
    "tables by data": "",
    "bucketize": "",
    "generalize": "0.7 s",
    "slicing": "0.6 s",
    "slicing by mixture": "",
    "sequential": "",
}
#: Of rows drawn from Adult, with the numbers of rows.
ADULT_JOBS = {
    "decompose": ((45_222, 204_000), "1 s, 3 s"),
    "two columns that share sex": ((100_000, 1_000_000), "5 s, n^1.1"),
    "four columns that share attributes": ((100_000, 1_000_000), "5 s, n^1.1"),
}


class Cost:
    """What a process took: seconds of the processors, seconds on the clock, megabytes at its peak."""

    def __init__(self, *command) -> None:
        began = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.clock = time.monotonic() - began
        self.processor = used.ru_utime + used.ru_stime
        self.peak = used.ru_maxrss / 1024
        if process.returncode:
            sys.exit(f"{command}: {said.decode()}")


def replicas(rows: int, path: Path) -> None:
    """Rows of Adult drawn by chance, of which each value is that of another row one time in sixteen."""
    with gzip.open(ADULT, "rt") as file:
        names, *adult = file.read().splitlines()
    chance, adult = random.Random(1), [row.split(",") for row in adult]
    with path.open("w") as out:
        print(names, file=out)
        for _ in range(rows):
            row = list(chance.choice(adult))
            for at in range(len(row)):
                if chance.random() < 1 / 16:
                    row[at] = chance.choice(adult)[at]
            print(",".join(row), file=out)


class Bench:
    def __init__(self, guardian: str, census: str, copy: str, folder: Path) -> None:
        self.guardian, self.census, self.copy, self.folder = guardian, census, copy, folder
        self.jobs = json.loads((HERE / "jobs.json").read_text())
        self.lines: list[str] = []

    def note(self, *cells: str) -> None:
        self.lines.append(f"| {' | '.join(cells)} |")
        print(self.lines[-1], flush=True)

    def publish(self, table: Path, job: dict) -> Cost:
        specification, out = self.folder / "job.json", self.folder / "out"
        specification.write_text(json.dumps(job))
        cost = Cost(self.guardian, "publish", "--input", table, "--spec", specification, "--out", out)
        subprocess.run(["rm", "-r", out], check=True)
        return cost

    def compared(self, name: str, table: Path, job: dict, aim: str, rounds: int = ROUNDS) -> float:
        """Publishes in turn with a copy, and gives the processor time."""
        copies, costs = [], []
        for _ in range(rounds):
            copies.append(Cost(self.copy, table, self.folder / "copy.csv").processor)
            costs.append(self.publish(table, job))
        taken = statistics.median(cost.processor for cost in costs)
        clock, peak = (statistics.median(of) for of in ([c.clock for c in costs], [c.peak for c in costs]))
        ratio = taken / statistics.median(copies)
        self.note(name, f"{taken:.2f} s", f"{ratio:.1f}", f"{clock:.2f} s", f"{peak:.0f} MB", aim)
        return taken

    def tables(self, is_large: bool) -> None:
        table = self.folder / "table.csv"
        subprocess.run([self.census, "1000000", table], check=True)
        for job, aim in CENSUS_JOBS.items():
            self.compared(f"census, 1,000,000 rows: {job}", table, self.jobs[job], aim)
        if is_large:
            subprocess.run([self.census, "10000000", table], check=True)
            self.compared("census, 10,000,000 rows: anatomy", table, self.jobs["anatomy"], "1.1 copies, 64 MB", 1)
        for job, (sizes, aim) in ADULT_JOBS.items():
            specification, taken = self.jobs[job], []
            if job.startswith("four"):
                # a nearly distinct column, as the rows of a census have; without it nearly all rows match many buckets
                specification["attributes"] = {"fnlwgt": {"publish": True, "identifier": False}}
                specification["method"]["columns"]["explicit"][0].append("fnlwgt")
            for rows in sizes:
                replicas(rows, table)
                taken.append(self.compared(f"Adult, {rows:,} rows: {job}", table, specification, aim, 1))
            growth = math.log(taken[1] / taken[0]) / math.log(sizes[1] / sizes[0])
            self.lines[-1] = self.lines[-1].replace(f" {job} |", f" {job}, n^{growth:.2f} |")

    def script(self, name: str, *arguments: str, **variables: str) -> str:
        variables |= {"GUARDIAN": self.guardian, "CENSUS": self.census}
        run = subprocess.run([HERE / name, *arguments], env=os.environ | variables, capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stdout + run.stderr)
        return run.stdout + run.stderr

    def calls(self) -> None:
        aims = {"sqlite": {"upload": "4 ms", "job": "3 ms", "list": "0.5 ms"}, "postgres": {"job": "5 ms", "list": "0.5 ms"}}
        for store, aim in aims.items():
            said = self.script("service.sh", "200", "1", STORE=store)
            for call, cost, rate in re.findall(r"(\w+): ([\d.]+) ms, (\d+) a second", said):
                name = {"sqlite": "embedded", "postgres": "Postgres"}[store]
                self.note(f"1,000 rows, {name}: {call}", f"{cost} ms", "", f"{rate} a second", "", aim.get(call, ""))

    def parquet(self) -> None:
        said = self.script("parquet.sh")
        user, system = map(float, re.search(r"a copy by DuckDB: ([\d.]+) \+ ([\d.]+) s", said).groups())
        taken, peak = re.search(r"all: ([\d.]+) s; peak resident (\d+) MB", said).groups()
        name = "Parquet, 10,000,000 rows: upload, job and download, of copies by DuckDB"
        self.note(name, f"{taken} s", f"{float(taken) / (user + system):.1f}", "", f"{peak} MB", "1.5 copies")


def main() -> None:
    guardian, census, copy, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=os.environ.get("WORK")) as name:
        bench = Bench(guardian, census, copy, Path(name))
        bench.tables("--large" in options)
        bench.calls()
        if "--large" in options:
            bench.parquet()
    if "--write" in options:
        lines = "".join(f"{line}\n" for line in bench.lines)
        before, head, after = re.split(r"(\| \| user \+ system \| copies .*\n\|---.*\n)", PAGE.read_text(), maxsplit=1)
        PAGE.write_text(before + head + lines + re.sub(r"\A(\|.*\n)*", "", after))


main()
