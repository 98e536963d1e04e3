"""Drives a service with the generated client: what is written here is what a user of such a client writes."""

import hashlib
import json
import pathlib
import re
import sys
from io import BytesIO
from uuid import uuid4

from guardian_client import AuthenticatedClient, Client, models
from guardian_client.api.datasets import get_dataset, list_datasets, purge_dataset, upload_dataset
from guardian_client.api.jobs import get_job, list_jobs, stream_job_events, submit_job
from guardian_client.api.operation import get_readiness
from guardian_client.api.plans import plan_job
from guardian_client.api.populations import enter_statements, put_population
from guardian_client.api.releases import (
    approve_release,
    download_archive,
    download_part,
    download_part_csv,
    download_part_parquet,
    get_release,
    get_release_report,
    withdraw_release,
)
from guardian_client.types import File

HOSPITAL = pathlib.Path(__file__).parent.parent / "examples" / "data" / "hospital.csv"
RULES = ["age, icd9 -> race", "gender, icd9 -> zipcode", "hospital, race -> zipcode"]


def names_are_usable():
    """No type was given a name for want of one."""
    document = json.loads((pathlib.Path(__file__).parent.parent / "openapi" / "openapi.json").read_text())
    known = {name.lower() for name in document["components"]["schemas"]}
    for name in models.__all__:
        assert name.lower() in known or not re.search(r"(AnyOf|OneOf|AllOf|Type|Item)\d*$", name), name


def main(url, token):
    client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
    assert get_readiness.sync(client=client).status == "ok"

    # persons and cells that no earlier run had
    run = uuid4().hex
    header, *rows = HOSPITAL.read_text().splitlines()
    table = "\n".join([f"{header},person", *(f"{row}-{run},{run}-{at}" for at, row in enumerate(rows))]).encode()
    key = models.PersonKey(key_system="generated", columns=["person"])
    put_population.sync("generated", client=client, body=models.PopulationDocument(description="made up", person=[key]))
    form = models.UploadForm(file=File(payload=BytesIO(table), file_name="hospital.csv", mime_type="text/csv"))
    dataset = upload_dataset.sync(client=client, body=form, name="hospital", population="generated", idempotency_key=run)
    assert isinstance(dataset, models.Dataset) and dataset.rows == 6, dataset
    assert [column.type_ for column in dataset.columns[:3]] == ["integer", "integer", "text"]
    # of the media types of a raw body a generated client knows one; a form says which it is
    form = models.UploadForm(file=File(payload=BytesIO(HOSPITAL.read_bytes()), file_name="again.csv", mime_type="text/csv"))
    assert isinstance(upload_dataset.sync(client=client, body=form, types="zipcode:text"), models.Dataset)
    assert dataset.id in [item.id for item in list_datasets.sync(client=client).items]
    # warnings are those of the upload
    read = get_dataset.sync(dataset.id, client=client)
    read.warnings = dataset.warnings
    assert read == dataset, read

    two = models.RequestedLDiversity(type_="l_diversity", l=2)
    method = models.VersatileMethod(type_="versatile", rules=RULES, default_guarantee=two)
    job = models.JobDocument(dataset=dataset.id, method=method, unlisted=models.Unlisted.DROP, hold=True, reason="a test of the generated client")
    plan = plan_job.sync(client=client, body=job)
    assert isinstance(plan, models.Plan), plan
    # where the store has tables of others: these persons are made up
    for remedy in [remedy for problem in plan.problems for remedy in problem.additional_properties["remedies"]]:
        if remedy["call"].endswith("/generated/statements"):
            disjoint = models.PopulationStatementDocument(disjoint_from=remedy["body"]["disjoint_from"], reason="made up")
            enter_statements.sync("generated", client=client, body=disjoint)
            plan = plan_job.sync(client=client, body=job)
    assert plan.feasible, plan
    assert isinstance(plan.rules[0].enforced_by, models.EnforcedByUnreachable)
    assert plan.rules[1].enforced_by == models.EnforcedByGuardian(guardian="t1", known=["gender"]), plan.rules[1]

    done = submit_job.sync(client=client, body=job, wait=60)
    assert isinstance(done, models.Job) and done.status == models.JobStatus.SUCCEEDED, done
    assert done.problem is None and isinstance(done.specification.method, models.VersatileMethod)
    assert get_job.sync(done.id, client=client) == done
    assert [job.id for job in list_jobs.sync(client=client, dataset=dataset.id, status=models.JobStatus.SUCCEEDED).items] == [done.id]
    assert "event: status" in stream_job_events.sync(done.id, client=client)

    manifest = get_release.sync(done.release, client=client)
    assert isinstance(manifest, models.Manifest) and manifest.status == models.ReleaseStatus.HELD, manifest
    reason = models.Reason(reason="as agreed")
    assert approve_release.sync(done.release, client=client, body=reason).status == models.ReleaseStatus.PUBLISHED
    assert get_release_report.sync(done.release, client=client).summary
    for table in manifest.tables:
        for part in table.parts:
            where = (done.release, table.name, part.name)
            page = download_part.sync(*where, client=client, format_=models.PartFormat.JSON, limit=4)
            assert isinstance(page, models.PartPage) and len(page.rows) == 4 and page.next_ == "4", page
            rest = download_part.sync(*where, client=client, format_=models.PartFormat.JSON, cursor=page.next_)
            assert len(rest.rows) == 2 and rest.next_ is None and rest.columns == page.columns
            raw = download_part_csv.sync_detailed(*where, client=client)
            assert hashlib.sha256(raw.content).hexdigest() == part.sha256, part
            assert download_part_parquet.sync_detailed(*where, client=client).content[:4] == b"PAR1"
    assert download_archive.sync_detailed(done.release, client=client).content[:2] == b"PK"

    # what is refused comes as the model of problems, with every fault
    bad = models.JobDocument(
        dataset=dataset.id,
        priority=101,
        method=models.VersatileMethod(type_="versatile", rules=["age -> nobody"], default_guarantee=two),
    )
    refused = submit_job.sync(client=client, body=bad)
    assert isinstance(refused, models.Problem), refused
    assert refused.status == 422 and refused.type_.endswith("/invalid-specification"), refused
    faults = {fault.pointer: fault.type_.rsplit("/", 1)[-1] for fault in refused.errors}
    assert faults["/priority"] == "parameter-range" and faults["/method/rules/0"] == "unknown-attribute", faults

    assert withdraw_release.sync(done.release, client=client, body=reason).status == models.ReleaseStatus.WITHDRAWN
    gone = get_release.sync(done.release, client=client)
    assert isinstance(gone, models.Problem) and gone.status == 410, gone
    assert purge_dataset.sync(dataset.id, client=client).rows == 6
    nobody = list_datasets.sync(client=Client(base_url=url))
    assert isinstance(nobody, models.Problem) and nobody.status == 401, nobody
    print("the generated client works")


if __name__ == "__main__":
    names_are_usable()
    main(sys.argv[1], pathlib.Path(sys.argv[2]).read_text().strip())
