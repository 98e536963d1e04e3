"""What the statements of releases shuffled and wrote in Apache Spark, by the events that it logs.

    python3 benches/spark_events.py FOLDER

FOLDER is the spark.eventLog.dir of a cluster with spark.eventLog.enabled=true and spark.eventLog.compress=false. A line is for the
statements that read or write the same files of the scratch folder, in the order of their first one, summed over all releases in FOLDER.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

MIB = 2**20


def events(folder):
    for path in sorted(Path(folder).rglob("events_*")):
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    pass  # the last line of a cluster that runs


def files(plan):
    """The last parts of the paths in a plan."""
    return sorted({path.rsplit("/", 1)[-1] for path in re.findall(r"file:(/[^\s,\]]+)", plan)})


def measured(folder):
    """Of each statement its plan, and the bytes that its tasks shuffled, wrote and sent to the driver."""
    plans, statement_of_stage, figures = {}, {}, defaultdict(lambda: [0, 0, 0])
    for event in events(folder):
        kind = event["Event"].rsplit(".", 1)[-1]
        if kind == "SparkListenerSQLExecutionStart":
            plans[event["executionId"]] = event["physicalPlanDescription"]
        elif kind == "SparkListenerJobStart":
            statement = event.get("Properties", {}).get("spark.sql.execution.id")
            for stage in event["Stage IDs"]:
                statement_of_stage.setdefault(stage, statement and int(statement))
        elif kind == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            metrics, sums = event["Task Metrics"], figures[statement_of_stage.get(event["Stage ID"])]
            sums[0] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            sums[1] += metrics["Output Metrics"]["Bytes Written"]
            sums[2] += metrics["Result Size"]
    return [(plan, figures[number]) for number, plan in sorted(plans.items())]


def main(folder):
    lines = {}
    for plan, sums in measured(folder):
        name = ("writes " if sums[1] else "reads ") + " ".join(files(plan))
        line = lines.setdefault(name, [0, 0, 0, 0])
        for place, value in enumerate([1, *sums]):
            line[place] += value
    print(f"{'statements':>10} {'shuffled':>9} {'written':>8} {'to driver':>9}  MiB")
    for name, (count, *sums) in lines.items():
        shuffled, written, sent = (value / MIB for value in sums)
        print(f"{count:10} {shuffled:9.2f} {written:8.2f} {sent:9.2f}  {name}")


main(*sys.argv[1:])
