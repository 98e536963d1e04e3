"""What uploads and jobs of large tables of persons cost.

`persons.py URL PID NIGHTS FOLDER METHOD`: uploads the table 1.csv in FOLDER into a population of the column `pid` and publishes it by METHOD;
with two NIGHTS both tables there, as nights of one series. Costs are processor time of the process PID, user and system, that of Postgres
if scripts/pg-tmp.sh has started it, and seconds on the clock. Ends with 1 when a table is not published.
"""

import json
import os
import sys
import time
from pathlib import Path

from nights import Service


def postgres_seconds() -> float:
    """The processor time of Postgres and of its processes, also of those that have ended."""
    data = os.environ.get("GUARDIAN_TEST_PGDATA")
    if not data:
        return 0.0
    server = (Path(data) / "postmaster.pid").read_text().split()[0]
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if stat.parent.name == server:
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == server:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    url, pid, nights, folder, method = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5])
    service, job = Service(url, pid), json.loads(method.read_text()) | {"unlisted": "drop"}
    population = {"description": "persons", "person": [{"key_system": "pid", "columns": ["pid"]}]}
    if nights > 1:
        population["republication"], job["republish"] = {}, {}
    service.send("PUT", "/v1/populations/persons", "application/json", json.dumps(population).encode())

    def measured(name: str, call) -> dict:
        before, store_before, began = service.seconds(), postgres_seconds(), time.monotonic()
        answer = call()
        clock = time.monotonic() - began
        costs, of_store = service.seconds() - before, postgres_seconds() - store_before
        also = f", {of_store:.1f} s of Postgres" if of_store else ""
        print(f"{name}: {costs:.1f} s{also}, {clock:.1f} on the clock", flush=True)
        return answer

    def publish(dataset: str) -> dict:
        body = json.dumps(job | {"dataset": dataset}).encode()
        state = service.send("POST", "/v1/jobs?wait=60", "application/json", body)
        while state["status"] in ("queued", "running"):
            state = service.send("GET", f"/v1/jobs/{state['id']}?wait=60", "application/json", b"")
        if state["status"] != "succeeded":
            sys.exit(f"{dataset}: {state}")
        return state

    for night in range(1, nights + 1):
        table = (folder / f"{night}.csv").read_bytes()
        upload = "/v1/datasets?population=persons"
        dataset = measured(f"upload {night}", lambda: service.send("POST", upload, "text/csv", table))
        measured(f"job {night}" if nights > 1 else "job", lambda: publish(dataset["id"]))
    print(f"peak resident {service.peak()} MB")


main()
