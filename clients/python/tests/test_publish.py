"""The package against a service at GUARDIAN_URL with a key of the preset pipeline, on a store that need not be empty. The key
GUARDIAN_ADMIN_KEY only declares a population."""

from __future__ import annotations

import io
import os
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pandas
import polars
import pytest

import guardian
from guardian import Guardian

URL, KEY = os.environ["GUARDIAN_URL"], os.environ["GUARDIAN_KEY"]
TWO = {"type": "l_diversity", "l": 2}
RULES = ["age -> disease"]
PEOPLE = {"population": "python-client"}


def columns() -> dict[str, list[Any]]:
    """Persons and cells that no earlier run had."""
    run = uuid.uuid4().hex
    return {
        "id": [f"{run}-{at}" for at in range(6)],
        "age": [30, 40, 50, 60, 70, 80],
        "disease": [f"{name} {run}" for name in ["flu", "HIV", "flu", "asthma", "gout", "gout"]],
    }


def document(**members: Any) -> dict[str, Any]:
    method = {"type": "versatile", "rules": RULES, "default_guarantee": TWO}
    return {"unlisted": "drop", "method": method, **members}


@pytest.fixture(scope="module", autouse=True)
def population() -> None:
    body = {"description": "made up", "person": [{"key_system": "python-client", "columns": ["id"]}]}
    headers = {"Authorization": f"Bearer {os.environ['GUARDIAN_ADMIN_KEY']}"}
    httpx.put(f"{URL}/v1/populations/python-client", json=body, headers=headers, trust_env=False).raise_for_status()


@pytest.fixture
def service() -> Iterator[Guardian]:
    with Guardian(URL, KEY) as service:
        yield service


class Network:
    """Stands before the service: `fault` says for each request what happens to its answer."""

    def __init__(self, fault: Callable[[str, int], str | None]) -> None:
        network, self.asked = self, 0

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                at, network.asked = network.asked, network.asked + 1
                what = fault(self.path, at)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
                answer = httpx.request(self.command, URL + self.path, content=body, headers=headers, timeout=90, trust_env=False)
                if what == "drop":
                    self.close_connection = True
                    return
                status, content = (503, b"away") if what == "503" else (answer.status_code, answer.content)
                if what == "damage":
                    content = content.replace(b"\n", b"\n\n")
                self.send_response(status)
                if what == "503":
                    self.send_header("Retry-After", "0")
                self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames_go_in_and_come_out(service: Guardian, library: Any) -> None:
    given = columns()
    release = service.publish(library.DataFrame(given), specification=document(), **PEOPLE)
    assert release.status == "published" and release.manifest.composition == "enforced" and release.report.summary
    parts = [part for table in release.frames.values() for part in table.values()]
    assert parts and all(isinstance(part, library.DataFrame) for part in parts)
    published: dict[str, list[Any]] = {name: list(part[name]) for part in parts for name in part.columns}
    assert sorted(published["age"]) == given["age"] and sorted(published["disease"]) == sorted(given["disease"])
    for name in release.frames:
        assert len(release.table(name)) == 6
    again = service.publish(library.DataFrame(given), specification=document(), **PEOPLE)
    assert again.id == release.id == service.release(release.id, library.DataFrame).id


def test_frames_of_pandas_are_read_in_one_thread(service: Guardian, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()

    class WatchedFile(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            threads.add(threading.get_ident())
            return super().read(size)

    release = service.publish(pandas.DataFrame(columns()), specification=document(), **PEOPLE)
    monkeypatch.setattr(io, "BytesIO", WatchedFile)
    assert release.frames and threads == {threading.get_ident()}


@pytest.mark.parametrize("fault", ["503", "drop"])
def test_lost_answers_make_nothing_twice(service: Guardian, fault: str) -> None:
    given = pandas.DataFrame(columns())
    network = Network(lambda path, at: fault if at % 2 == 0 else None)
    release = Guardian(network.url, KEY).publish(given, specification=document(), **PEOPLE)
    dataset = service.upload(given, **PEOPLE).id
    headers = {"Authorization": f"Bearer {KEY}"}
    jobs = httpx.get(f"{URL}/v1/jobs?dataset={dataset}", headers=headers, trust_env=False).json()["items"]
    assert len(jobs) == 1
    assert service.publish(given, specification=document(), **PEOPLE).id == release.id
    assert network.asked >= 6


def test_a_service_that_stays_away_is_unavailable() -> None:
    network = Network(lambda path, at: "503")
    with pytest.raises(guardian.Unavailable):
        Guardian(network.url, KEY, tries=3).upload(pandas.DataFrame(columns()))
    assert network.asked == 3
    with pytest.raises(guardian.Unavailable, match="did not answer"):
        Guardian("http://127.0.0.1:9", KEY, tries=1).upload(pandas.DataFrame(columns()))


def test_faults_and_unknown_members_are_refused(service: Guardian) -> None:
    frame = pandas.DataFrame(columns())
    with pytest.raises(guardian.Refused) as caught:
        service.publish(frame, rules=["age -> height"], guarantee=TWO, **PEOPLE)
    refused = caught.value
    assert (refused.status, refused.type) == (422, "invalid-specification")
    assert "/method/rules/0" in {fault.pointer for fault in refused.faults} and "/method/rules/0" in str(refused)
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)
    with pytest.raises(guardian.Refused) as caught:
        service.publish(frame, specification=document(unlistd="drop"), **PEOPLE)
    assert "/unlistd" in {fault.pointer for fault in caught.value.faults}


def test_a_person_keeps_one_row(service: Guardian) -> None:
    given = columns()
    twice = {name: [*values, *values] for name, values in given.items()}
    release = service.publish(polars.DataFrame(twice), specification=document(), keep=1, **PEOPLE)
    assert all(len(release.table(name)) == 6 for name in release.frames)
    assert release.manifest.to_dict()["unit"] == {"subject": "id", "max_rows": 1, "kept": "random"}


def test_a_held_release_is_read_once_approved(service: Guardian) -> None:
    release = service.publish(polars.DataFrame(columns()), specification=document(), hold=True, reason="a test", **PEOPLE)
    assert release.status == "held"
    for read in [lambda: release.manifest, lambda: release.report, lambda: release.frames]:
        with pytest.raises(guardian.Held):
            read()
    # who may approve it sees it
    with Guardian(URL, os.environ["GUARDIAN_ADMIN_KEY"]) as officer:
        held = officer.release(release.id, polars.DataFrame)
        assert (held.status, held.manifest.status.value) == ("held", "held")
    headers = {"Authorization": f"Bearer {os.environ['GUARDIAN_ADMIN_KEY']}"}
    approval = f"{URL}/v1/releases/{release.id}/approve"
    httpx.post(approval, json={"reason": "a test"}, headers=headers, trust_env=False).raise_for_status()
    assert release.status == "published"
    assert release.frames


def test_people_without_keys_are_refused_before_the_job(service: Guardian) -> None:
    with pytest.raises(guardian.NotEnforced):
        service.publish(pandas.DataFrame(columns()), specification=document())


def test_a_damaged_part_is_found(service: Guardian) -> None:
    frame = pandas.DataFrame(columns())
    network = Network(lambda path, at: "damage" if path.endswith(".csv") else None)
    damaged = Guardian(network.url, KEY)
    with pytest.raises(guardian.Damaged):
        _ = damaged.publish(frame, specification=document(), **PEOPLE).frames
    assert damaged.publish(frame, specification=document(), check=False, **PEOPLE).frames


def test_plans_and_suggestions_are_of_the_frame(service: Guardian) -> None:
    frame = polars.DataFrame(columns())
    assert service.plan(frame, specification=document(), **PEOPLE).feasible
    suggestion = service.suggest(frame, **PEOPLE)
    assert [column.name for column in suggestion.columns] == frame.columns


def test_what_is_no_frame_is_refused(service: Guardian) -> None:
    frame = pandas.DataFrame(columns())
    for bad in [[1], frame.rename(columns={"age": 1}), None]:
        with pytest.raises(TypeError):
            service.upload(bad)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="reset_index"):
        service.upload(frame.set_index("id"))
