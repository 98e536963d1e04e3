"""A service, as calls on frames."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack, cast
from uuid import UUID

import httpx

from ._frames import Frame, to_parquet
from ._generated.api.datasets import suggest_specification, upload_dataset
from ._generated.api.jobs import get_job, submit_job
from ._generated.api.plans import plan_job
from ._generated.api.releases import get_release
from ._generated.client import AuthenticatedClient, Client
from ._generated.models import Dataset, Job, JobDocument, JobStatus, Manifest, PersonIdentity, Plan, Suggestion
from ._generated.types import File
from ._problems import NotEnforced, Refused, Unavailable, local
from ._release import Release
from ._transport import RepeatingTransport

log = logging.getLogger("guardian")

Document = Mapping[str, Any]
Answer = TypeVar("Answer")

# the claims that a release about persons without keys can have
WITHOUT_KEYS = {"same_dataset_only", "unproven"}


class UploadOptions(TypedDict, total=False):
    """The query of an upload: whose rows the table holds. See "Upload options" in docs/how-to/pipelines.md."""

    name: str
    population: str
    person: str
    max_rows_per_person: int
    record_key: str
    subject: str
    max_rows_per_subject: int
    keep: int
    keep_order: str
    types: str


class DocumentAsGiven:
    """In place of a parsed document, which would lack unknown members: the service refuses these."""

    def __init__(self, members: Document) -> None:
        self.members = members

    def to_dict(self) -> dict[str, Any]:
        return dict(self.members)


class Guardian:
    """A service. Requests are repeated when it is busy or away, at most `tries` times and about `patience` seconds each.

    What is asked for twice is made once: uploads and jobs have keys that follow from their content, which the service keeps for
    a day. `attempt` is a part of these keys: another text asks anew, such as after a job that failed or a withdrawn release.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        tries: int = 8,
        patience: float = 300.0,
        timeout: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`timeout` bounds each wait for bytes. `transport` is for proxies and certificates, see HTTPX."""
        repeating = RepeatingTransport(transport or httpx.HTTPTransport(), tries, patience)
        settings: dict[str, Any] = {
            "base_url": url,
            "timeout": httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            "httpx_args": {"transport": repeating},
        }
        # the calls are the same without a key, though they are not typed so
        client = Client(**settings) if key is None else AuthenticatedClient(token=key, **settings)
        self._client = cast(AuthenticatedClient, client)

    def __enter__(self) -> Guardian:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.get_httpx_client().close()

    def upload(self, frame: Frame, *, attempt: str = "", **options: Unpack[UploadOptions]) -> Dataset:
        """Sends a frame as Parquet with its digest. In pandas, NaN is a missing value."""
        parquet = to_parquet(frame)
        digest = hashlib.sha256(parquet).digest()
        answer = upload_dataset.sync(
            client=self._client,
            body=File(payload=io.BytesIO(parquet)),
            content_digest=f"sha-256=:{base64.b64encode(digest).decode()}:",
            idempotency_key=key_of("upload", digest.hex(), options, attempt),
            **options,
        )
        dataset = expected(Dataset, answer)
        for warning in dataset.warnings or []:
            log.warning("dataset %s: %s", dataset.id, warning.detail)
        return dataset

    def suggest(self, frame: Frame, *, attempt: str = "", **options: Unpack[UploadOptions]) -> Suggestion:
        """A specification in which every column is placed, with reasons, and with questions for people."""
        dataset = self.upload(frame, attempt=attempt, **options)
        return expected(Suggestion, suggest_specification.sync(dataset.id, client=self._client))

    def plan(
        self,
        frame: Frame,
        *,
        rules: Sequence[str | Document] | None = None,
        guarantee: Document | None = None,
        specification: Document | JobDocument | None = None,
        attempt: str = "",
        **options: Unpack[UploadOptions],
    ) -> Plan:
        """What a publication would do, as `publish` takes it. Where it is not `feasible`, `problems` says why."""
        dataset = self.upload(frame, attempt=attempt, **options)
        document = document_of(dataset, rules, guarantee, specification)
        return expected(Plan, plan_job.sync(client=self._client, body=cast(Any, DocumentAsGiven(document))))

    def publish(
        self,
        frame: Frame,
        *,
        rules: Sequence[str | Document] | None = None,
        guarantee: Document | None = None,
        specification: Document | JobDocument | None = None,
        hold: bool | None = None,
        reason: str | None = None,
        accept: Collection[str] = (),
        check: bool = True,
        within: float = 3600.0,
        attempt: str = "",
        **options: Unpack[UploadOptions],
    ) -> Release[Frame]:
        """Publishes a frame under rules, such as `"age, job -> disease"`, or as a whole specification says.

        `guarantee` is that of rules without their own. `specification` is the document of a job, or of a suggestion; `hold` and
        `reason` replace its members. A release whose `composition` is not `enforced` is refused unless `accept` names it: before
        the job, if the persons have no keys. Waits about `within` seconds for the job; the same call waits on. A held release is
        read once it is approved, unless the key may approve it.
        """
        dataset = self.upload(frame, attempt=attempt, **options)
        given = {name: value for name, value in {"hold": hold, "reason": reason}.items() if value is not None}
        document = {**document_of(dataset, rules, guarantee, specification), **given}
        if dataset.identity == PersonIdentity.CONTENT_ONLY and not WITHOUT_KEYS & set(accept):
            detail = f"the persons of dataset {dataset.id} have no keys; name a population, or accept same_dataset_only"
            raise NotEnforced(local("not-enforced", "persons are not identified", detail))
        job = self._follow(self._submit(document, attempt), within)
        release = self._release(str(job.release), type(frame), accept, check, job)
        if release.status != "held":
            # what it claims of its people
            _ = release.manifest
        return release

    def release(self, id: str, kind: type[Frame], *, accept: Collection[str] = (), check: bool = True) -> Release[Frame]:
        """A release with frames of a kind, `pandas.DataFrame` or `polars.DataFrame`. `accept` and `check` are as in `publish`:
        with `check` the CSV bytes of each part are held against the manifest."""
        release = self._release(id, kind, accept, check)
        _ = release.manifest
        return release

    def _release(
        self, id: str, kind: type[Frame], accept: Collection[str], check: bool, job: Job | None = None
    ) -> Release[Frame]:
        def manifest() -> Manifest:
            manifest = expected(Manifest, get_release.sync(UUID(id), client=self._client))
            claim = manifest.composition.value
            if claim not in {"enforced", *accept}:
                detail = f"release {id} claims {claim}, which is not accepted"
                raise NotEnforced(local("not-enforced", "the release claims less of its people", detail))
            return manifest

        def status() -> str | None:
            now = None if job is None else expected(Job, get_job.sync(job.id, client=self._client)).release_status
            return now.value if now else None

        return Release(self._client, id, kind, check, manifest, status)

    def _submit(self, document: Document, attempt: str) -> Job:
        key = key_of("job", document, attempt)
        return expected(Job, submit_job.sync(client=self._client, body=cast(Any, DocumentAsGiven(document)), idempotency_key=key))

    def _follow(self, job: Job, within: float) -> Job:
        until = time.monotonic() + within
        while job.status in (JobStatus.QUEUED, JobStatus.RUNNING):
            left = until - time.monotonic()
            if left <= 0:
                raise Unavailable(local("still-running", "the job has not ended", f"job {job.id} is {job.status.value}"))
            job = expected(Job, get_job.sync(job.id, client=self._client, wait=min(20, int(left) + 1)))
        if job.status != JobStatus.SUCCEEDED:
            raise Refused(job.problem or local("job-ended", "the job has no release", f"job {job.id} is {job.status.value}"))
        return job


def document_of(
    dataset: Dataset,
    rules: Sequence[str | Document] | None,
    guarantee: Document | None,
    specification: Document | JobDocument | None,
) -> dict[str, Any]:
    """The document of a job."""
    if (rules is None) == (specification is None) or (guarantee is not None and rules is None):
        raise ValueError("either rules with a guarantee, or a specification")
    if specification is None:
        # a text is a sequence of texts, too
        if isinstance(rules, str):
            raise TypeError("rules are a list")
        method = {"type": "versatile", "rules": list(rules or [])}
        document: dict[str, Any] = {"method": method | ({} if guarantee is None else {"default_guarantee": guarantee})}
    else:
        document = dict(specification.to_dict() if isinstance(specification, JobDocument) else specification)
    if document.get("dataset") not in (None, str(dataset.id)):
        raise ValueError(f"the specification is of another dataset than {dataset.id}")
    return {**document, "dataset": str(dataset.id)}


def key_of(kind: str, *content: object) -> str:
    """An idempotency key that follows from the content."""
    return f"{kind}-{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}"


def expected(kind: type[Answer], answer: object) -> Answer:
    """The answer as what it is: refusals were raised before."""
    if not isinstance(answer, kind):
        raise TypeError(f"the service answered {type(answer).__name__} in place of {kind.__name__}")
    return answer
