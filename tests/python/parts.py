"""A table of every type, sent by pyarrow, published as it is, and read back by pyarrow and pandas: parts.py URL."""

import datetime
import decimal
import io
import pathlib
import sys
import tempfile
import threading
import unittest.mock

import duckdb
import duckdb_ext
import pandas as pd
import polars as pl
import pyarrow as pa

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
import pipeline  # noqa: E402

ROWS = 8
WANTED = {
    "whole": pa.int64(),
    # as many digits as the values of the part have
    "exact": pa.decimal128(4, 2),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "moment": pa.timestamp("us", tz="UTC"),
    "clock": pa.timestamp("us"),
    "float": pa.float64(),
}


def table():
    """Every second row has a missing value in each column but the last; the text has an empty one as well."""

    def column(kind, values):
        return pa.array([None if at % 2 else values[at // 2 % 2] for at in range(ROWS)], kind)

    moment = datetime.datetime(2026, 3, 1, 2, 30, tzinfo=datetime.timezone.utc)
    naive = datetime.datetime(2026, 3, 29, 2, 30)
    return pa.table(
        {
            "whole": column(pa.int64(), [1, 2**40]),
            "exact": column(pa.decimal128(5, 2), [decimal.Decimal("1.50"), decimal.Decimal("-20.25")]),
            "flag": column(pa.bool_(), [True, False]),
            "day": column(pa.date32(), [datetime.date(2026, 3, 1), datetime.date(1969, 12, 31)]),
            "moment": column(pa.timestamp("us", tz="UTC"), [moment, moment + datetime.timedelta(microseconds=1)]),
            "clock": column(pa.timestamp("us"), [naive, naive.replace(microsecond=500000)]),
            # what a decimal would round, and what has no short decimal
            "float": column(pa.float64(), [0.1 + 0.2, -5e-324]),
            "text": column(pa.string(), ["", "007"]),
            "row": pa.array([at % 4 for at in range(ROWS)], pa.int64()),
        }
    )


class WatchedFile(io.BytesIO):
    """Knows which threads read it."""

    threads = set()

    def read(self, *size):
        self.threads.add(threading.get_ident())
        return super().read(*size)


def read_in_one_thread(parquet):
    with unittest.mock.patch("io.BytesIO", WatchedFile):
        read = pipeline.read_part(parquet)
    assert WatchedFile.threads == {threading.get_ident()}, WatchedFile.threads
    return read


def main(url):
    guardian = pipeline.Guardian(url)
    sent = table()
    dataset = guardian.upload(sent, "types")
    job = {
        "dataset": dataset["id"],
        "attributes": {name: {"publish": True} for name in sent.column_names},
        "no_rules_reason": "the table has no data subjects",
        "method": {"type": "versatile", "rules": []},
    }
    done = guardian.follow(guardian.submit(job), lambda job: None)
    where = (done["release"], "t1", "rows")

    # Parquet: types as they were sent, and missing values are null
    came = read_in_one_thread(guardian.part(*where, "parquet"))
    for name, kind in WANTED.items():
        assert came.schema.field(name).type == kind, (name, came.schema)
        assert came.column(name).null_count == ROWS // 2, name
    text = came.column("text").combine_chunks()
    text = text.dictionary_decode() if pa.types.is_dictionary(text.type) else text
    assert sorted(text.to_pylist(), key=str) == sorted(sent.column("text").to_pylist(), key=str)
    plain = came.set_column(came.column_names.index("text"), "text", text.cast(pa.string()))

    def ordered(rows):
        return sorted(rows.select(sent.column_names).to_pylist(), key=str)

    assert ordered(plain) == ordered(sent), came
    frame = pipeline.load(guardian.part(*where, "parquet"))
    assert str(frame["whole"].dtype) == "Int64" and frame["whole"].isna().sum() == ROWS // 2
    assert frame["whole"].max() == 2**40, "no integer became a float on its way"

    # by its address: polars reads the footer and the columns it needs by ranges
    address = f"{url}/v1/releases/{done['release']}/tables/t1/parts/rows"
    by_ranges = pl.read_parquet(f"{address}.parquet", columns=["whole", "row"])
    assert by_ranges.height == ROWS and by_ranges["row"].to_list() == came.column("row").to_pylist(), by_ranges

    # duckdb does so with its extension httpfs, which a package brings
    database = duckdb.connect()
    extension = next(pathlib.Path(next(iter(duckdb_ext.__path__))).rglob("httpfs.duckdb_extension"))
    database.load_extension(str(extension))
    for ending in ("parquet", "csv"):
        found = database.execute(f"SELECT whole, \"row\" FROM '{address}.{ending}'").fetchall()
        assert found == by_ranges.select("whole", "row").rows(), (ending, found)

    # CSV: pandas gets the types it can see; a reader that knows quotes tells an empty text from a missing one
    csv = guardian.part(*where, "csv")
    frame = pd.read_csv(io.BytesIO(csv), dtype={"whole": "Int64", "text": "string"}, keep_default_na=True)
    assert str(frame["row"].dtype) == "int64" and str(frame["exact"].dtype) == "float64", frame.dtypes
    assert frame["whole"].isna().sum() == ROWS // 2 and "007" in set(frame["text"].dropna())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "part.csv"
        path.write_bytes(csv)
        read = pipeline.read_table(path)
    assert read.column("text").null_count == ROWS // 2 and "" in read.column("text").to_pylist(), read
    assert read.schema.field("whole").type == pa.int64() and read.schema.field("text").type == pa.string()

    # buckets: what is tied by them adds up to the rows there are
    hospital = pipeline.read_table(pathlib.Path(pipeline.__file__).parent / "data" / "hospital.csv")
    others = {"disjoint_from": [f"dataset:{dataset['id']}"], "reason": "the first table is of no people"}
    guardian.call("PUT", "/v1/populations/patients", json=others)
    dataset = guardian.upload(hospital, "hospital", {"population": "patients"})
    rules = ["hospital, race -> zipcode"]
    guarantee = {"type": "l_diversity", "l": 2}
    method = {"type": "versatile", "rules": rules, "default_guarantee": guarantee}
    job = {"dataset": dataset["id"], "unlisted": "drop", "method": method}
    done = guardian.follow(guardian.submit(job), lambda job: None)
    (published,) = guardian.manifest(done["release"])["tables"]
    parts = [guardian.part(done["release"], published["name"], part["name"], "parquet") for part in published["parts"]]
    bucketed = pipeline.read_part(parts[0])
    assert bucketed.schema.field("bucket").type == pa.int32(), bucketed.schema
    joined = pipeline.linked([pipeline.load(part) for part in parts])
    assert abs(joined["weight"].sum() - hospital.num_rows) < 1e-9, joined
    assert abs(joined.loc[joined["race"] == "white", "weight"].sum() - 3) < 1e-9, "what one part says alone is exact"
    print("parts are read as they were written")


if __name__ == "__main__":
    main(sys.argv[1])
