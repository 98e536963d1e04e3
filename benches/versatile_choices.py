#!/usr/bin/env python3
"""What the coloring of `uad` costs on Adult: versatile_choices.py GUARDIAN ADULT.csv.gz

ADULT has the nine categorical columns; one to nine rules, in either coloring. One key, so that all figures come again.
"""

import csv
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

KEY = "5a" * 32
RULES = [
    "education, sex -> occupation",
    "race, income -> marital-status",
    "workclass, sex -> relationship",
    "native-country, race -> education",
    "income, workclass -> occupation",
    "race, sex -> education",
    "native-country, income -> relationship",
    "workclass, race -> marital-status",
    "income, native-country -> occupation",
]
COUNTS = {"count_queries": {"number": 500, "dimensions": 2, "value_fraction": "0.3"}}


class Bench:
    def __init__(self, program, table):
        self.program, self.table = program, table
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.made = 0

    def publish(self, method, measures=("kl", COUNTS)):
        """The internal report, the manifest and the folder of a release."""
        self.made += 1
        out, internal = self.folder / str(self.made), self.folder / f"{self.made}.internal.json"
        specification = self.folder / f"{self.made}.json"
        method = {"type": "versatile", "default_guarantee": {"type": "l_diversity", "l": 2}} | method
        attributes = {name: {"publish": True} for name in columns(self.table)}
        document = {"attributes": attributes, "method": method, "internal": {"utility": list(measures)}}
        specification.write_text(json.dumps(document))
        command = [self.program, "publish", self.table, specification, "--out", out, "--reproduce", KEY]
        done = subprocess.run([*command, "--internal-report", internal], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{method}: {done.stderr}")
        return json.loads(internal.read_text()), json.loads((out / "manifest.json").read_text()), out


def columns(table):
    with gzip.open(table, "rt", newline="") as lines:
        return next(csv.reader(lines))


def colors(bench):
    print("rules | KL free_last | KL paper | COUNT free_last | COUNT paper")
    for number in range(1, len(RULES) + 1):
        found = []
        for coloring in ["free_last", "paper"]:
            method = {"algorithm": "uad", "rules": RULES[:number], "uad": {"coloring": coloring}}
            found.append(bench.publish(method)[0])
        nats = [report["kl"]["nats"] for report in found]
        errors = [report["count_queries"]["mean"] for report in found]
        print(f"{number} | {nats[0]:.3f} | {nats[1]:.3f} | {errors[0]:.3f} | {errors[1]:.3f}", flush=True)


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    colors(Bench(*sys.argv[1:]))


if __name__ == "__main__":
    main()
