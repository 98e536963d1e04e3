#!/usr/bin/env python3
"""What choices of `versatile` cost on Adult: versatile_choices.py GUARDIAN ADULT.csv.gz [colors|goals]

ADULT has the nine categorical columns. `colors`: one to nine rules with `uad`, in either coloring. `goals`: what `auto` chooses by
each goal, and how often a decision tree that is learned from the release errs on rows that it was not learned from. One key, so that
all figures come again.
"""

import collections
import csv
import gzip
import json
import math
import pathlib
import random
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


def goals(bench):
    print("rules | goal | chosen | error of a tree")
    for number in [1, 2, 4]:
        for goal in ["entropy", "count", "classification"]:
            method = {"algorithm": "auto", "rules": RULES[:number], "goal": goal}
            if goal == "classification":
                method["class"] = "income"
            _, manifest, folder = bench.publish(method, ())
            chosen = [of["detail"].split(", ", 1)[1].split(" preserved")[0] for of in manifest["warnings"] if "chosen" in of["type"]]
            print(f"{number} | {goal} | {chosen[0]} | {least_error(manifest, folder, 'income'):.4f}", flush=True)


def least_error(manifest, folder, of):
    """The least error of trees on the tables in which the class stands with others."""
    errors = []
    for part in (part for table in manifest["tables"] for part in table["parts"]):
        with open(folder / part["file"], newline="") as lines:
            rows = list(csv.DictReader(lines))
        if not rows or of not in rows[0]:
            continue
        random.Random(3).shuffle(rows)
        features = [name for name in rows[0] if name not in ("bucket", of)]
        trained, tested = rows[len(rows) // 3 :], rows[: len(rows) // 3]
        tree = learned(trained, features, of)
        errors.append(sum(predicted(tree, row) != row[of] for row in tested) / len(tested))
    return min(errors)


def entropy(counts):
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())


def learned(rows, features, of):
    """A decision tree: each node splits by the feature that gains most, as long as chance alone would gain less."""
    counts = collections.Counter(row[of] for row in rows)
    best = (0.0, None, None)
    for feature in features:
        parts = collections.defaultdict(list)
        for row in rows:
            parts[row[feature]].append(row)
        left = sum(len(part) * entropy(collections.Counter(row[of] for row in part)) for part in parts.values())
        gain = len(rows) * entropy(counts) - left - (len(parts) - 1) * (len(counts) - 1)
        if gain > best[0] + 1e-9:
            best = (gain, feature, parts)
    _, feature, parts = best
    below = {value: learned(part, [name for name in features if name != feature], of) for value, part in (parts or {}).items()}
    return counts.most_common(1)[0][0], feature, below


def predicted(tree, row):
    most, feature, below = tree
    return predicted(below[row[feature]], row) if feature and row[feature] in below else most


def main():
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    bench = Bench(*sys.argv[1:3])
    for part in sys.argv[3:] or ["colors", "goals"]:
        {"colors": colors, "goals": goals}[part](bench)


if __name__ == "__main__":
    main()
