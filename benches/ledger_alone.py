"""What the people ledger costs in SQLite alone, in processor time: 2,000 persons of a night are looked up and then inserted.

`ledger_alone.py FOLDER NIGHTS...`: FOLDER gets a database for each number of nights (0.11 GB per 1,000). Hashes are drawn anew; pages
are in the cache of the system. Means of ten nights after two.
"""

import os
import resource
import sqlite3
import sys
from pathlib import Path

PERSONS = 2000
TABLES = """
CREATE TABLE covered (system INTEGER NOT NULL, hash BLOB NOT NULL, coverage INTEGER NOT NULL,
    PRIMARY KEY (system, hash, coverage)) STRICT, WITHOUT ROWID;
CREATE TEMP TABLE drawn (hash BLOB, coverage INTEGER)
"""


def seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def made(file: Path, nights: int) -> None:
    store = sqlite3.connect(file)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA cache_size = -500000")
    store.executescript(TABLES)
    for night in range(nights):
        store.executemany("INSERT INTO drawn VALUES (?, ?)", ((os.urandom(16), night) for _ in range(PERSONS)))
    store.execute("INSERT INTO covered SELECT 1, hash, coverage FROM drawn ORDER BY hash")
    store.execute("CREATE INDEX covered_of_coverage ON covered (coverage)")
    store.commit()
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def night(store: sqlite3.Connection, number: int) -> list[float]:
    persons = sorted(os.urandom(16) for _ in range(PERSONS))
    began = seconds()
    for person in persons:
        store.execute("SELECT coverage FROM covered WHERE system = 1 AND hash = ?", (person,)).fetchall()
    looked = seconds()
    for some in (persons[:1000], persons[1000:]):
        store.execute("BEGIN IMMEDIATE")
        store.executemany("INSERT INTO covered VALUES (1, ?, ?)", ((person, number) for person in some))
        store.execute("COMMIT")
    return [looked - began, seconds() - looked]


def main() -> None:
    for nights in map(int, sys.argv[2:]):
        file = Path(sys.argv[1]) / f"{nights}.db"
        if not file.exists():
            made(file, nights)
        store = sqlite3.connect(file, isolation_level=None)
        store.execute("PRAGMA synchronous = FULL")
        costs = [night(store, nights + number) for number in range(12)][2:]
        store.execute("DELETE FROM covered WHERE coverage >= ?", (nights,))
        means = [1000 * sum(of) / len(of) for of in zip(*costs)]
        print("{} nights: look {:.1f} ms, insertion {:.1f} ms".format(nights, *means), flush=True)


main()
