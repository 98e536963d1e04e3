"""What calls of a service on small tables cost: uploads, jobs, and lists of releases.

`service.py URL PID CSV [CLIENTS]`: cuts the rows of CSV into tables of 1,000 with people of their own, uploads each one into one population,
publishes each one (anatomy, l = 2, on its last column), by CLIENTS (1) at the same time, and reads the list of the newest hundred releases
a hundred times. Costs are processor time of the process PID, user and system, a call. Ends with 1 when a table is not published.
"""

import http.client
import json
import sys
import threading
import time
from pathlib import Path

from nights import Service, define

ROWS = 1000
LISTS = 100


def spread(work: list, clients: int, call) -> None:
    """Calls `call` with every item of `work`, by so many threads with a service each."""
    threads = [threading.Thread(target=lambda own: [call(item) for item in own], args=(work[n::clients],)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    url, pid, path, clients = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int((sys.argv[4:] or ["1"])[0])
    names, *rows = path.read_bytes().splitlines(keepends=True)
    known, sensitive = names.decode().strip().split(",")[:-1], names.decode().strip().split(",")[-1]
    names, rows = b"id," + names, [b"p%d," % person + row for person, row in enumerate(rows)]
    tables = [b"".join([names, *rows[first : first + ROWS]]) for first in range(0, len(rows) - ROWS + 1, ROWS)]
    local, datasets, failed = threading.local(), [], []
    meter = Service(url, pid)
    define(meter)

    def service() -> Service:
        if not hasattr(local, "service"):
            local.service = Service(url, pid)
        return local.service

    def upload(table: bytes) -> None:
        datasets.append(service().send("POST", "/v1/datasets?population=nights", "text/csv", table)["id"])

    def publish(dataset: str) -> None:
        guarantee = {"type": "l_diversity", "l": 2}
        method = {"type": "anatomy", "quasi_identifiers": known, "sensitive": sensitive, "guarantee": guarantee}
        job = {"dataset": dataset, "unlisted": "drop", "method": method}
        job = service().send("POST", "/v1/jobs?wait=60", "application/json", json.dumps(job).encode())
        if job["status"] != "succeeded":
            failed.append(job)

    def lists(_: int) -> None:
        connection = service().connection
        connection.request("GET", "/v1/releases?limit=100")
        answer = connection.getresponse()
        if answer.status != 200 or not answer.read():
            failed.append(answer.status)

    def guarded(call):
        # a thread ends without a word where the program would
        def run(item) -> None:
            try:
                call(item)
            except SystemExit as fault:
                failed.append(fault)

        return run

    for name, call, work in (("upload", upload, tables), ("job", publish, datasets), ("list", lists, range(LISTS))):
        before, began = meter.seconds(), time.monotonic()
        spread(list(work), clients, guarded(call))
        cost, took = meter.seconds() - before, time.monotonic() - began
        count = len(tables) if name != "list" else LISTS
        print(f"{name}: {1000 * cost / count:.1f} ms, {count / took:.0f} a second", flush=True)
    print(f"peak resident {meter.peak()} MB")
    if failed:
        sys.exit(f"{len(failed)} failed: {failed[0]}")


main()
