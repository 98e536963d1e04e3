"""Instructions that a publication by each method takes, held against those of benches/instructions.json.

`instructions.py GUARDIAN CENSUS [--write]`: publishes 20,000 rows of the census, and 5,025 of Adult, by each job of benches/jobs.json under
valgrind, which counts instructions whatever else the machine does. One thread, one key, so that runs hardly differ. Ends with 1 when a
job takes more than the tolerance above what is written there, or is not there; `--write` writes what was counted. Needs valgrind.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COUNTS = HERE / "instructions.json"
CENSUS_ROWS = 20_000
#: Every ninth row of Adult is published.
ADULT_STEP = 9
#: Random keys of hash tables differ from run to run.
TOLERANCE = 0.03
COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")


def counted(guardian: str, table: Path, job: dict, folder: Path) -> float:
    """Millions of instructions of a publication."""
    specification, out = folder / "job.json", folder / "out"
    specification.write_text(json.dumps(job))
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", guardian, "publish"]
    command += ["--reproduce", "0f" * 32, "--input", table, "--spec", specification, "--out", out]
    one_thread = os.environ | {"RAYON_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=one_thread)
    found = COUNT.search(run.stderr)
    if run.returncode or not found:
        sys.exit(run.stdout + run.stderr)
    subprocess.run(["rm", "-r", out], check=True)
    return int(found[1].replace(",", "")) / 1e6


def main() -> None:
    guardian, census, *options = sys.argv[1:]
    jobs = json.loads((HERE / "jobs.json").read_text())
    known = json.loads(COUNTS.read_text())["millions"] if COUNTS.exists() else {}
    found, slower = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people, adult = folder / "census.csv", folder / "adult.csv"
        subprocess.run([census, str(CENSUS_ROWS), people], check=True)
        with gzip.open(HERE.parent / "examples/data/adult.csv.gz", "rt") as file:
            names, *rows = file
        adult.write_text("".join([names, *rows[::ADULT_STEP]]))
        of_adult = ("decompose", "two columns that share sex", "four columns that share attributes")
        for job, specification in jobs.items():
            found[job] = round(counted(guardian, adult if job in of_adult else people, specification, folder), 1)
            before = known.get(job)
            share = f"{100 * (found[job] / before - 1):+.1f}%" if before else "not known before"
            print(f"{job}: {found[job]:.1f} million instructions, {share}", flush=True)
            if not before or found[job] > before * (1 + TOLERANCE):
                slower.append(job)
    if "--write" in options:
        rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        COUNTS.write_text(json.dumps({"rustc": rustc, "millions": found}, indent=2) + "\n")
    elif slower:
        sys.exit(f"more instructions than in {COUNTS.name}: {', '.join(slower)}; if they are worth it, write them with --write")


main()
