"""What uploads and jobs of large tables of persons cost.

`persons.py URL PID NIGHTS FOLDER METHOD`: uploads the table 1.csv in FOLDER into a population of the column `pid` and publishes it by METHOD;
with two NIGHTS both tables there, as nights of one series. Costs are processor time of the process PID, user and system, and seconds on
the clock. Ends with 1 when a table is not published.
"""

import json
import sys
import time
from pathlib import Path

from nights import Service


def main() -> None:
    url, pid, nights, folder, method = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5])
    service, job = Service(url, pid), json.loads(method.read_text()) | {"unlisted": "drop"}
    population = {"description": "persons", "person": [{"key_system": "pid", "columns": ["pid"]}]}
    if nights > 1:
        population["republication"], job["republish"] = {}, {}
    service.send("PUT", "/v1/populations/persons", "application/json", json.dumps(population).encode())

    def measured(name: str, call) -> dict:
        before, began = service.seconds(), time.monotonic()
        answer = call()
        print(f"{name}: {service.seconds() - before:.1f} s, {time.monotonic() - began:.1f} on the clock", flush=True)
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
