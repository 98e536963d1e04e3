"""Fills the people ledger of an embedded store with made nights, until there are NIGHTS, and prints how many there are.

`fill_ledger.py FILE NIGHTS PERSONS`: FILE is the database of a stopped service with some real nights of `nights.py`. A made night has
persons of its own. It has the marks of a real night, of which those that no other real night has are drawn anew. So marks that many
tables of equal columns have in common are as frequent as they really are.
"""

import json
import os
import random
import sqlite3
import sys
import uuid


def mark() -> str:
    return os.urandom(16).hex()


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
        shared = {hash for (hash,) in store.execute("SELECT hash FROM alike GROUP BY hash HAVING COUNT(DISTINCT coverage) > 1")}
        own = "SELECT hash, kind, weight FROM alike WHERE coverage = ?"
        marks = {id: store.execute(own, (id,)).fetchall() for id, *_ in real}
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
            drawn = ((hash if hash in shared else os.urandom(16), id, kind, weight) for hash, kind, weight in marks[template])
            store.executemany("INSERT INTO new_marks VALUES (?, ?, ?, ?)", drawn)
        store.execute("INSERT INTO covered SELECT ?, hash, coverage FROM new_persons ORDER BY hash", (system,))
        store.execute("INSERT OR IGNORE INTO alike SELECT hash, coverage, kind, weight FROM new_marks ORDER BY hash")
        store.execute("CREATE INDEX covered_of_coverage ON covered (coverage)")
        store.execute("CREATE INDEX alike_of_coverage ON alike (coverage, kind, hash)")
        store.execute("UPDATE ticket_counters SET ticket = ticket + ? WHERE tenant = ?", (len(made), tenant))
        store.commit()
    print(max(nights, len(real)))


main()
