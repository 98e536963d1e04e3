"""Tables for scripts/spark_smoke.sh, and what must hold of the releases.

    spark_smoke.py tables FOLDER           the vectors as Parquet, each with its specification
    spark_smoke.py visits FOLDER           a table of every type, as one file too, with specifications; others that are refused
    spark_smoke.py parquet CSV FOLDER      a table as Parquet, in several files
    spark_smoke.py catalog FOLDER TABLE    a table of the catalog of the engine, from a folder of Parquet files
    spark_smoke.py vectors WORK            the parts of the vectors are the expected ones
    spark_smoke.py plans PLAN PLAN         two plans count the same of what no rule prevents
    spark_smoke.py same RELEASE RELEASE    two releases hold the same rows in the same files
    spark_smoke.py equal RELEASE LOCAL     the parts of the cluster, of whole numbers and texts, have the rows of those of a file
    spark_smoke.py service BASE WORK       a service registers and publishes a table of the engine, under its ledger
    spark_smoke.py queued BASE WORK        the same table is registered and a job of it queued, whose id is printed
    spark_smoke.py ended BASE JOB          the job succeeds
    spark_smoke.py secrets WORK KEY        nothing secret stands in what the cluster has written
"""

import csv
import datetime
import decimal
import gzip
import hashlib
import hmac
import json
import os
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

VECTORS = json.loads(Path("tests/vectors/ranked.json").read_text(encoding="utf-8"))
FILES = 4


def planned():
    """The vectors that a specification can ask for."""
    return [vector for vector in VECTORS if vector["l"] is not None]


def put(table, folder):
    folder.mkdir(parents=True)
    rows = -(-table.num_rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * rows, rows), folder / f"{number}.parquet")


def tables(folder):
    for vector in planned():
        columns = list(zip(*vector["rows"]))
        table = pa.table({name: list(cells) for name, cells in zip(vector["names"], columns)})
        place = Path(folder) / f"vector-{vector['name']}"
        put(table, place)
        known = [name for name in vector["names"] if name != vector["sensitive"]]
        guarantee = {"type": "l_diversity", "l": vector["l"]}
        method = {"type": "anatomy", "quasi_identifiers": known, "sensitive": vector["sensitive"], "guarantee": guarantee}
        Path(f"{place}.json").write_text(json.dumps({"method": method}), encoding="utf-8")


def visits(folder):
    """A table of every type, with missing values, in a folder and as one file, and two that are refused."""
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000)
    moments = [moment + datetime.timedelta(minutes=at * 279470273 % 4294967291 % 9) if at % 19 else None for at in range(3000)]
    fees = [None if at % 23 == 0 else decimal.Decimal(at * 39373 % 2147483647 % 12 - 4) / 8 for at in range(3000)]
    days = [datetime.date(2026, 1, 1 + at * 7 % 28) if at % 11 else None for at in range(3000)]
    table = pa.table({
        "day": days,
        "emergency": [None if at % 13 == 0 else at * 2654435761 % 4096 > 1024 for at in range(3000)],
        "ward": [["north", "söuth", "", "ea\"st"][at * 40503 % 65536 // 16384] for at in range(3000)],
        "weight": pa.array([None if at % 17 == 0 else at * 48271 % 2147483647 % 90 for at in range(3000)], pa.int16()),
        "d": [at * 69621 % 2147483647 % 5 for at in range(3000)],
        "p": [at * 16807 % 2147483647 % 3 for at in range(3000)],
        "fee": pa.array(fees, pa.decimal128(20, 10)),
        "admitted": pa.array(moments, pa.timestamp("us", "UTC")),
        "clock": pa.array(moments[::-1], pa.timestamp("us")),
    })
    put(table, Path(folder) / "visits")
    pq.write_table(table, Path(folder) / "visits.parquet")
    put(table.append_column("score", [[at / 7 for at in range(3000)]]), Path(folder) / "untyped")
    put(table.append_column("due", pa.array([4_000_000] * 3000, pa.date32())), Path(folder) / "undated")
    for sensitive in ("day", "fee", "admitted"):
        known = [name for name in table.column_names if name != sensitive]
        guarantee = {"type": "l_diversity", "l": 3}
        method = {"type": "anatomy", "quasi_identifiers": known, "sensitive": sensitive, "guarantee": guarantee}
        (Path(folder) / f"visits-{sensitive}.json").write_text(json.dumps({"method": method}), encoding="utf-8")


    known = ["day", "emergency", "ward", "weight", "fee", "admitted", "clock"]
    method = {"type": "generalize", "quasi_identifiers": known, "sensitive": ["d", "p"],
              "guarantees": [{"type": "k_anonymity", "k": 7}, {"type": "distinct_l_diversity", "l": 2}]}
    specification = {"unlisted": "drop", "method": method}
    (Path(folder) / "visits-classes.json").write_text(json.dumps(specification), encoding="utf-8")
    columns = [["day", "emergency", "fee", "admitted", "clock"], ["ward", "weight"], ["p", "d"]]
    method = {"type": "slicing", "sensitive": "d", "split": "strict", "columns": {"explicit": columns},
              "guarantee": {"type": "l_diversity", "l": 2}}
    (Path(folder) / "visits-slices.json").write_text(json.dumps({"method": method}), encoding="utf-8")


def parquet(path, folder):
    put(pyarrow.csv.read_csv(path), Path(folder))


def catalog(folder, table):
    from pyspark.sql.connect.session import SparkSession

    spark = SparkSession.builder.remote("sc://127.0.0.1:15012").getOrCreate()
    spark.sql(f"create database {table.rpartition('.')[0]}").collect()
    spark.sql(f"create table {table} using parquet as select * from parquet.`{folder}`").collect()
    spark.stop()


def rows(release, part):
    found = duckdb.sql(f"select * from read_parquet('{release}/{part}/*.parquet', filename = false)").fetchall()
    return [list(row) for row in found]


def ordered(cells):
    return [(0,) if cell is None else (1, cell) if isinstance(cell, int) else (2, cell.encode()) for cell in cells]


def vectors(work):
    for vector in planned():
        release = Path(work) / "out" / f"vector-{vector['name']}"
        for part in ("qi", "sa"):
            found = sorted(rows(release, f"t1.{part}"), key=ordered)
            assert found == vector[part], (vector["name"], part, found, vector[part])


def plans(one, other):
    exposures = [json.loads(Path(of).read_text(encoding="utf-8"))["exposures"] for of in (one, other)]
    assert exposures[0] and exposures[0] == exposures[1], exposures


def same(one, other):
    parts = sorted(path.name for path in Path(one).iterdir() if path.is_dir())
    assert parts, one
    for part in parts:
        files = [sorted(path.name for path in (Path(of) / part).iterdir()) for of in (one, other)]
        assert files[0] == files[1], files
        for name in files[0]:
            left, right = (f"select * from read_parquet('{of}/{part}/{name}')" for of in (one, other))
            differing = duckdb.sql(f"select count(*) from (({left} except all {right}) union all ({right} except all {left}))")
            assert differing.fetchall() == [(0,)], (part, name)


def equal(release, local):
    """Every cell of a class is a text."""
    compared = 0
    for path in sorted(Path(local).glob("t1.*.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            header, *expected = list(csv.reader(file))
        table = pq.read_table(Path(release) / path.stem)
        assert table.column_names == header, table.column_names
        assert table.num_rows == len(expected), path
        if not all(pa.types.is_integer(of) or pa.types.is_string(of) for of in table.schema.types):
            continue
        found = zip(*(["" if cell is None else str(cell) for cell in column.to_pylist()] for column in table.columns))
        assert sorted(map(list, found)) == sorted(expected), path
        compared += 1
    assert compared > 0, local


def asked(base, path, body=None, kind="application/json", method=None):
    """The answer of a service: its status, and its document or its bytes."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, data, {"Content-Type": kind}, method=method), timeout=900) as answer:
            found, status, form = answer.read(), answer.status, answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        found, status, form = error.read(), error.code, "application/json"
    return status, json.loads(found) if form.endswith("json") else found


def registered(base, work):
    status, dataset = asked(base, "/v1/datasets/by-reference", {"engine": "lake", "table": f"{work}/lake/adult"})
    assert status == 201 and dataset["rows"] == 45222 and dataset["bytes"] == 0, dataset
    return dataset["id"]


def adult_job(dataset):
    return {"dataset": dataset, **json.loads(Path("examples/adult.json").read_text(encoding="utf-8"))}


def ended(base, job):
    for _ in range(60):
        _, found = asked(base, f"/v1/jobs/{job}?wait=60")
        if found["status"] not in ("queued", "running"):
            break
    assert found["status"] == "succeeded", found
    return found["release"]


def queued(base, work):
    status, job = asked(base, "/v1/jobs", adult_job(registered(base, work)))
    assert status == 202, job
    print(job["id"])


def service(base, work):
    dataset = registered(base, work)
    _, plan = asked(base, "/v1/plans", adult_job(dataset))
    assert plan["feasible"], plan
    status, job = asked(base, "/v1/jobs", adult_job(dataset))
    assert status in (200, 202), job
    release = ended(base, job["id"])
    _, manifest = asked(base, f"/v1/releases/{release}")
    assert manifest["made_by"]["engine"] == "spark" and manifest["verification"]["verified"], manifest
    for table in manifest["tables"]:
        for part in table["parts"]:
            _, found = asked(base, f"/v1/releases/{release}/tables/{table['name']}/parts/{part['name']}?format=parquet")
            with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
                file.write(found)
                file.flush()
                columns = ", ".join(f'"{name}"' for name in part["attributes"])
                left, right = (f"select {columns} from '{of}'" for of in (file.name, f"{work}/lake/adult/*.parquet"))
                differing = duckdb.sql(f"select count(*) from (({left} except all {right}) union all ({right} except all {left}))")
                assert differing.fetchall() == [(0,)], (table["name"], part["name"])
    # an upload of the same rows has the same release, and what would undo it is refused
    _, upload = asked(base, "/v1/datasets", Path(work, "adult.csv").read_bytes(), "text/csv")
    status, job = asked(base, "/v1/jobs?wait=60", adult_job(upload["id"]))
    assert status == 200 and job["release"] == release and job["reused"], job
    second = {"dataset": dataset, "unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": ["age"],
              "sensitive": "education", "guarantee": {"type": "l_diversity", "l": 2}}}
    _, job = asked(base, "/v1/jobs?wait=60", second)
    assert job["status"] == "refused" and job["problem"]["type"].endswith("composition-violated"), job
    made_here(base, work, [dataset, upload["id"]])
    status, refused = asked(base, "/v1/datasets/by-reference", {"engine": "lake", "table": f"{work}/scratch/adult"})
    assert status == 422 and refused["type"].endswith("source-refused"), refused
    status, refused = asked(base, "/v1/datasets/by-reference", {"engine": "lake", "table": f"{work}/lake/nothing"})
    assert status == 422 and refused["reason"] == "not_found", refused


def made_here(base, work, others):
    """What the engine does not make is made from the rows of its copy, with the types of the table. Its people are no others."""
    visitors = {"description": "of a test", "person": [], "disjoint_from": [f"dataset:{of}" for of in others], "reason": "made up"}
    status, _ = asked(base, "/v1/populations/visitors", visitors, method="PUT")
    assert status == 201
    place = {"engine": "lake", "table": f"{work}/lake/visits"}
    _, dataset = asked(base, "/v1/datasets/by-reference?population=visitors", place)
    decompose = {"dataset": dataset["id"], "unlisted": "drop", "method": {"type": "decompose", "quasi_identifiers": ["ward"],
                 "sensitive": ["fee", "admitted"], "l": {"fee": 2, "admitted": 2}}}
    _, plan = asked(base, "/v1/plans", decompose)
    assert plan["feasible"] and any(of["type"] == "rows-read-here" for of in plan["warnings"]), plan
    _, job = asked(base, "/v1/jobs", decompose)
    release = ended(base, job["id"])
    _, manifest = asked(base, f"/v1/releases/{release}")
    assert "made_by" not in manifest and manifest["verification"]["linkage"] == "checked", manifest
    status, _ = asked(base, f"/v1/releases/{release}/internal-report")
    assert status == 200
    assert not os.listdir(f"{work}/scratch")


def secrets(work, key):
    """Nothing that leads from a row to its bucket: keys of uses, in digits; rare values of the tables."""
    secret = []
    for use in ("rank/t1", "labels/t1"):
        secret.append(hmac.new(bytes.fromhex(key), b"guardian engine 1\0" + use.encode(), hashlib.sha256).hexdigest().encode())
    values = ["bronchitis", "Armed-Forces", "Holand-Netherlands", "12:Armed-Forces"]
    secret.extend(value.encode() for value in values)
    for folder in ("logs", "events", "workers", "local"):
        for place, _, names in os.walk(Path(work) / folder):
            for name in names:
                path = Path(place) / name
                data = path.read_bytes()
                if name.endswith(".gz"):
                    data = gzip.decompress(data)
                found = [text for text in secret if text in data]
                assert not found, (str(path), found)


if __name__ == "__main__":
    commands = [tables, visits, parquet, catalog, vectors, plans, same, equal, service, queued, ended, secrets]
    {command.__name__: command for command in commands}[sys.argv[1]](*sys.argv[2:])
