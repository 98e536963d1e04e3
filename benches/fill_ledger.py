"""Fills the people ledger of an embedded store with made nights, until there are NIGHTS, and prints how many there are.

`fill_ledger.py FILE NIGHTS PERSONS`: FILE is the database of a stopped service with some real nights of `nights.py`. A made night has
persons of its own. It has the marks of a real night, of which those that no other real night has are drawn anew. So marks that many
tables of equal columns have in common are as frequent as they really are.
"""

import json
import os
import random
import sqlite3
import struct
import sys
import uuid
from collections import Counter
from itertools import groupby

#: A signature as it is kept: its hash, and its rows.
SIGNATURE = struct.Struct(">16sQ")


def mark() -> str:
    return os.urandom(16).hex()


def signatures_of(store: sqlite3.Connection, coverage: int) -> list[tuple[bytes, int, int]]:
    """Each with the number of its sample, and its rows."""
    samples = store.execute("SELECT sample, signatures FROM coverage_signatures WHERE coverage = ?", (coverage,)).fetchall()
    return [(hash, sample, rows) for sample, value in samples for hash, rows in SIGNATURE.iter_unpack(value)]


def finds_tables(hash: bytes, rows: int) -> bool:
    return rows == 1 and hash[-1] % 4 == 0


def renewed(body: dict) -> dict:
    """The coverage of other rows with the same columns."""
    body["datasets"] = [str(uuid.uuid4())]
    body["tables"] = [mark()]
    body["contents"] = {name: [mark()] for name in body["contents"]}
    for system in body["systems"].values():
        system["columns"] = {name: mark() for name in system["columns"]}
    return body


def main() -> None:
    file, nights, persons = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(nights)
    with sqlite3.connect(file) as store:
        store.execute("PRAGMA cache_size = -500000")
        rows = "SELECT id, tenant, job, body, published, cuts, people_group FROM coverages WHERE state = 'live'"
        real = [row for row in store.execute(rows).fetchall() if json.loads(row[3])["populations"] == ["nights"]]
        made = range(len(real), nights)
        tenant = real[0][1]
        (system,) = store.execute("SELECT id FROM key_systems WHERE tenant = ? AND name = 'id'", (tenant,)).fetchone()
        (ticket,) = store.execute("SELECT ticket FROM ticket_counters WHERE tenant = ?", (tenant,)).fetchone()
        blocks = {id: store.execute("SELECT hash, weight FROM indexed_marks WHERE coverage = ? AND kind = 0", (id,)).fetchall() for id, *_ in real}
        signatures = {id: signatures_of(store, id) for id, *_ in real}
        of_nights = ({mark[0] for mark in blocks[id] + signatures[id]} for id, *_ in real)
        holders = Counter(hash for hashes in of_nights for hash in hashes)
        store.execute("DROP INDEX covered_of_coverage")
        store.execute("DROP INDEX alike_of_coverage")
        store.execute("CREATE TEMP TABLE new_persons (hash BLOB, coverage INTEGER)")
        store.execute("CREATE TEMP TABLE new_marks (hash BLOB, coverage INTEGER, kind INTEGER, weight INTEGER)")
        for number, _ in enumerate(made, ticket + 1):
            template, _, _, body, published, cuts, group = chance.choice(real)
            coverage = renewed(json.loads(body))
            job, dataset = uuid.uuid4().bytes, uuid.UUID(coverage["datasets"][0]).bytes
            values = (tenant, job, number, json.dumps(coverage), published, cuts, group)
            insert = "INSERT INTO coverages (tenant, job, state, ticket, body, published, cuts, people_group) VALUES (?, ?, 'live', ?, ?, ?, ?, ?)"
            id = store.execute(insert, values).lastrowid
            store.execute("INSERT INTO coverage_tables VALUES (?, ?)", (bytes.fromhex(coverage["tables"][0]), id))
            store.execute("INSERT INTO coverage_datasets VALUES (?, ?)", (dataset, id))
            store.executemany("INSERT INTO new_persons VALUES (?, ?)", ((os.urandom(16), id) for _ in range(persons)))
            drawn = {hash: hash if holders[hash] > 1 else os.urandom(16) for hash, *_ in blocks[template] + signatures[template]}
            own = sorted((sample, drawn[hash], rows) for hash, sample, rows in signatures[template])
            for sample, of in groupby(own, lambda signature: signature[0]):
                value = b"".join(SIGNATURE.pack(hash, rows) for _, hash, rows in of)
                store.execute("INSERT INTO coverage_signatures VALUES (?, ?, ?)", (id, sample, value))
            indexed = [(hash, id, sample + 1, rows) for sample, hash, rows in own if finds_tables(hash, rows)]
            indexed += ((drawn[hash], id, 0, weight) for hash, weight in blocks[template])
            store.executemany("INSERT INTO new_marks VALUES (?, ?, ?, ?)", indexed)
        store.execute("INSERT INTO covered SELECT ?, hash, coverage FROM new_persons ORDER BY hash", (system,))
        store.execute("INSERT OR IGNORE INTO indexed_marks SELECT hash, coverage, kind, weight FROM new_marks ORDER BY hash")
        store.execute("CREATE INDEX covered_of_coverage ON covered (coverage)")
        store.execute("CREATE INDEX alike_of_coverage ON indexed_marks (coverage, kind, hash)")
        store.execute("UPDATE ticket_counters SET ticket = ticket + ? WHERE tenant = ?", (len(made), tenant))
        store.commit()
    print(max(nights, len(real)))


main()
