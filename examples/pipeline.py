#!/usr/bin/env python3
"""Publishes a table from a data pipeline, and loads what came out.

    GUARDIAN_KEY=... pipeline.py --url https://host/guardian --table visits.csv --population clinic \\
        --job hospital.json --out release

The key has the preset pipeline. The population says whose people the table is about, and which columns identify them; --person names other columns.
The table, CSV or Parquet, is sent as Parquet with its digest. Requests are repeated when the service is busy or away, under keys
that follow from what is sent, so that nothing is made twice. Parts come back as Parquet for pandas, and as CSV, whose bytes are
held against the manifest. Ends with 1, and the problem on standard error, when anything is refused, or when the release claims less of
its people than `enforced` and --accept does not name it.

Needs requests, pandas and pyarrow.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import pathlib
import re
import sys
import time

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import requests

BUSY = {429, 503}

# integers stay integers where values are missing
NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.string(): pd.StringDtype(),
}


class Refused(Exception):
    """What the service answers instead of doing it: the text of a problem document."""

    def __init__(self, problem):
        lines = [f"{problem.get('title')}: {problem.get('detail')}"]
        lines += [f"  {fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", [])]
        super().__init__("\n".join(lines))


class Guardian:
    """A service, and the requests of this pipeline."""

    def __init__(self, url, key=None, tries=6):
        self.url, self.tries = url.rstrip("/"), tries
        self.session = requests.Session()
        if key:
            self.session.headers["Authorization"] = f"Bearer {key}"

    def call(self, method, path, **request):
        """Sends a request, again and again as long as that can help."""
        for attempt in range(1, self.tries + 1):
            answer = None
            try:
                answer = self.session.request(method, self.url + path, timeout=(5, 120), **request)
            except (requests.ConnectionError, requests.Timeout):
                if attempt == self.tries:
                    raise
            if answer is not None and answer.ok:
                return answer
            wait = answer.headers.get("Retry-After") if answer is not None else None
            if answer is not None:
                # 409 with Retry-After: the first request with this key still runs
                again = answer.status_code in BUSY or (answer.status_code == 409 and wait)
                if not again or attempt == self.tries:
                    raise Refused(problem_of(answer))
            time.sleep(float(wait) if wait else min(2**attempt, 30))

    def upload(self, table, name, people=None):
        """Sends a table as Parquet; `people` says whose rows they are. The dataset."""
        people = people or {}
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        body = buffer.getvalue()
        digest = hashlib.sha256(body).digest()
        headers = {
            "Content-Type": "application/vnd.apache.parquet",
            "Content-Digest": f"sha-256=:{base64.b64encode(digest).decode()}:",
            "Idempotency-Key": f"upload-{hashlib.sha256(digest + json.dumps(people).encode()).hexdigest()}",
        }
        return self.call("POST", "/v1/datasets", params={"name": name, **people}, data=body, headers=headers).json()

    def plan(self, job):
        return self.call("POST", "/v1/plans", json=job).json()

    def submit(self, job):
        key = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
        return self.call("POST", "/v1/jobs", json=job, headers={"Idempotency-Key": f"job-{key}"}).json()

    def follow(self, job, tell):
        """Waits until a job has ended, and tells of its progress; the job."""
        while job["status"] in ("queued", "running"):
            tell(job)
            job = self.call("GET", f"/v1/jobs/{job['id']}", params={"wait": 20}).json()
        if job["status"] != "succeeded":
            raise Refused(job["problem"] or {"title": "the job ended", "detail": job["status"]})
        return job

    def manifest(self, release):
        return self.call("GET", f"/v1/releases/{release}").json()

    def part(self, release, table, part, format):
        path = f"/v1/releases/{release}/tables/{table}/parts/{part}"
        return self.call("GET", path, params={"format": format}).content


def problem_of(answer):
    try:
        return answer.json()
    except ValueError:
        # not from the service: a gateway, say
        return {"title": f"status {answer.status_code}", "detail": answer.reason}


def read_table(path):
    """A table as it is: nothing is guessed but canonical integers, so that 007 stays a text, and "" is not a missing value."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    names = pyarrow.csv.open_csv(path).schema.names
    convert = pyarrow.csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = pyarrow.csv.read_csv(path, convert_options=convert)
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        canonical = pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,17})$"), skip_nulls=True).as_py()
        if canonical and column.null_count < len(column):
            table = table.set_column(at, name, column.cast(pa.int64()))
    return table


def read_part(parquet):
    """A part as Arrow has it. It is read in this thread alone: one of Arrow's that drops a file of Python's while Python ends
    aborts the process (apache/arrow#34314)."""
    return pq.ParquetFile(io.BytesIO(parquet), pre_buffer=False).read(use_threads=False)


def load(parquet):
    """A part for pandas."""
    return read_part(parquet).to_pandas(types_mapper=NULLABLE.get)


def linked(parts):
    """The parts of a table beside each other, tied by bucket.

    Within a bucket every row of one part may belong to every row of the other, so that all pairs are given, each with the weight
    that makes the rows of a bucket count as many as there are. Sums of weights estimate counts; single rows are nobody's.
    """
    first, *others = parts
    if not others:
        return first.assign(weight=1.0)
    joined = first
    for other in others:
        joined = joined.merge(other, on="bucket")
    rows = first.groupby("bucket").size().rename("rows")
    pairs = joined.groupby("bucket").size().rename("pairs")
    weights = (rows / pairs).rename("weight").reset_index()
    return joined.merge(weights, on="bucket").drop(columns="bucket")


def publish(guardian, dataset, job, accepted, out, tell):
    """From the dataset to the tables that come out, by name."""
    tell(f"dataset {dataset['id']}: {dataset['rows']} rows")
    for warning in dataset.get("warnings", []):
        tell(f"{warning['type']}: {warning['detail']}")
    job = {**job, "dataset": dataset["id"]}
    plan = guardian.plan(job)
    if not plan["feasible"]:
        raise Refused(plan["problems"][0])
    done = guardian.follow(guardian.submit(job), lambda job: tell(f"job {job['id']}: {job['status']}"))
    manifest = guardian.manifest(done["release"])
    if manifest["composition"] not in accepted:
        detail = f"the release {manifest['id']} claims {manifest['composition']}; see --accept"
        raise Refused({"title": "its people are not identified", "detail": detail})

    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2))
    tables = {}
    for published in manifest["tables"]:
        parts = []
        for part in published["parts"]:
            where = (done["release"], published["name"], part["name"])
            csv, parquet = guardian.part(*where, "csv"), guardian.part(*where, "parquet")
            if hashlib.sha256(csv).hexdigest() != part["sha256"]:
                raise Refused({"title": "damaged", "detail": f"{part['file']} is not what the manifest says"})
            (out / part["file"]).write_bytes(csv)
            (out / re.sub(r"\.csv$", ".parquet", part["file"])).write_bytes(parquet)
            parts.append(load(parquet))
        tables[published["name"]] = linked(parts)
        tell(f"table {published['name']}: {', '.join(published['attributes'])}")
    return tables


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--url", default=os.environ.get("GUARDIAN_URL", "http://127.0.0.1:8080"))
    arguments.add_argument("--table", type=pathlib.Path, required=True, help="CSV or Parquet")
    arguments.add_argument("--job", type=pathlib.Path, required=True, help="a job document without its dataset")
    arguments.add_argument("--out", type=pathlib.Path, required=True, help="the folder for what comes out")
    arguments.add_argument("--population", help="whose people the table is about")
    arguments.add_argument("--person", help="the columns that identify them, if not those of the population")
    arguments.add_argument("--accept", action="append", default=[], help="a composition that is enough besides enforced")
    given = arguments.parse_args()
    guardian = Guardian(given.url, os.environ.get("GUARDIAN_KEY"))
    try:
        job = json.loads(given.job.read_text())
        people = {name: value for name in ("population", "person") if (value := getattr(given, name))}
        dataset = guardian.upload(read_table(given.table), given.table.stem, people)
        tables = publish(guardian, dataset, job, {"enforced", *given.accept}, given.out, print)
    except (Refused, requests.RequestException) as refused:
        print(refused, file=sys.stderr)
        return 1
    for name, table in tables.items():
        print(f"{name}: {round(table['weight'].sum())} rows, {len(table.columns) - 1} columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
