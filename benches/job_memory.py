#!/usr/bin/env python3
"""Memory of one release at its peak, and its estimate: job_memory.py GUARDIAN TABLE.csv[.gz] SPECIFICATION.json [TIMES]

Publishes the table, its rows repeated TIMES times, and polls what the process holds for itself. `before` is what it holds once the table
is read; the estimate is of the whole job. Estimates repeat the constants of src/engine/memory.rs.
"""

import csv
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def width(codes):
    return 1 if codes <= 0x100 else 2 if codes <= 0x10000 else 4


def estimates(rows, columns, method, sensitive):
    """Of a release, of choosing classes or tables, of measuring."""
    sizes = [(len(values), sum(len(value) for value in values)) for values in columns]
    cells = sum(3 * width(codes) for codes, _ in sizes)
    text = sum(size // codes + 2 for codes, size in sizes)
    release = (8 << 20) + rows * (40 + cells) + 3 * min(rows, 1 << 16) * text
    release += sum(44 * codes + 4 * size for codes, size in sizes)
    choice = 0
    if method["type"] == "generalize":
        choice = rows * (72 + 12 * len(method["quasi_identifiers"]))
    elif method.get("algorithm") not in (None, "uad", "single_attribute"):
        choice = rows * (8 + 32 * sensitive + 70 * 2)
    values = sum(44 * codes + size for codes, size in sizes)
    measured = rows * (8 * len(columns) + 96) + values
    return release, choice, measured


def peak(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    most = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except FileNotFoundError:
            break
        held = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
        most = max(most, int(held[0]) * 1024 if held else 0)
        time.sleep(0.005)
    if process.wait() != 0:
        raise SystemExit(process.stderr.read())
    return most


def main():
    program, table, specification = sys.argv[1:4]
    times = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    opened = gzip.open(table, "rt", newline="") if table.endswith(".gz") else open(table, newline="")
    with opened as lines:
        names, *rows = csv.reader(lines)
    document = json.loads(pathlib.Path(specification).read_text())
    used = [name for name in names if document["attributes"].get(name, {}).get("drop") is not True]
    columns = [{row[names.index(name)] for row in rows} for name in used]
    folder = pathlib.Path(tempfile.mkdtemp())
    with open(folder / "t.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        for _ in range(times):
            writer.writerows(rows)
    method = document["method"]
    sensitive = len({rule.split("->")[1] for rule in method.get("rules", [])})
    release, choice, measured = estimates(len(rows) * times, columns, method, sensitive)
    took = peak([program, "publish", folder / "t.csv", specification, "--out", folder / "out"])
    total = release + choice + measured
    print(f"{len(rows) * times} x {len(used)}, {method['type']}: {took / MIB:.0f} MiB, estimated {total / MIB:.0f} MiB, {total / took:.2f}", end="")
    print(f" (release {release / MIB:.0f}, choice {choice / MIB:.0f}, measures {measured / MIB:.0f})", flush=True)


if __name__ == "__main__":
    main()
