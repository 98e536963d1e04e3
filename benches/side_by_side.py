"""Clients that upload side by side: what they are answered, and what an upload costs.

`side_by_side.py URL PID CLIENTS ROWS`: each of CLIENTS threads uploads ten tables of ROWS rows into one population, and comes again
when told to. Prints how often each status was answered. Ends with 1 at an answer other than 2xx or 429 with Retry-After.
"""

import http.client
import json
import sys
import threading
import time
import urllib.parse
from collections import Counter

from nights import People, Service, define

ROUNDS = 10


def main() -> None:
    url, pid, clients, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    service, people = Service(url, pid), People()
    define(service)
    place = urllib.parse.urlsplit(url)
    tables = [[people.table(rows) for _ in range(ROUNDS)] for _ in range(clients)]
    answers: Counter[str] = Counter()
    lock, begin = threading.Lock(), threading.Barrier(clients)

    def upload(table: bytes) -> str | None:
        connection = http.client.HTTPConnection(place.hostname, place.port)
        connection.request("POST", "/v1/datasets?population=nights", table, {"content-type": "text/csv"})
        answer = connection.getresponse()
        document = json.loads(answer.read())
        again = answer.getheader("retry-after") if answer.status == 429 else None
        kind = "" if answer.status < 300 else " " + document["type"].rsplit("/", 1)[1]
        with lock:
            answers[f"{answer.status}{kind}{' with Retry-After' if again else ''}"] += 1
        return again

    def client(own: list[bytes]) -> None:
        begin.wait()
        for table in own:
            while (again := upload(table)) is not None:
                time.sleep(int(again))

    threads = [threading.Thread(target=client, args=(own,)) for own in tables]
    before = service.seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cost = (service.seconds() - before) / (clients * ROUNDS)
    print(f"{clients} clients: {dict(answers)}, {1000 * cost:.0f} ms an upload, peak resident {service.peak()} MB")
    is_expected = [kind == "201" or kind.startswith("429") and kind.endswith("with Retry-After") for kind in answers]
    if not all(is_expected):
        sys.exit(1)


main()
