"""A release, and its parts as frames."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic
from uuid import UUID

from ._frames import Frame, reader
from ._generated.api.releases import download_part_csv, download_part_parquet, get_release_report
from ._generated.client import AuthenticatedClient
from ._generated.models import Manifest, ManifestPart, PartView, PublicReport
from ._problems import Damaged, Held, Refused, local


class Release(Generic[Frame]):
    """A release: its manifest, report and frames when they are asked for. Of a held one, they raise `Held` until it is approved,
    unless the key may approve it."""

    def __init__(
        self,
        client: AuthenticatedClient,
        id: str,
        kind: type[Frame],
        check: bool,
        manifest: Callable[[], Manifest],
        status: Callable[[], str | None],
    ) -> None:
        """`status` is what its job says of it, or nothing."""
        self._client, self._check, self._read_manifest, self._read_status = client, check, manifest, status
        self._kind: type[Frame] = kind
        self.id = id

    @cached_property
    def _read(self) -> Callable[[bytes], Frame]:
        return reader(self._kind)

    @cached_property
    def manifest(self) -> Manifest:
        try:
            return self._read_manifest()
        except Refused as refused:
            # a held release is refused as an absent one is
            if refused.status != 404 or self._read_status() != "held":
                raise
            detail = f"release {self.id} waits for approval"
            raise Held(local("held", "the release is held", detail, refused.status)) from refused

    @property
    def status(self) -> str:
        """`held` until it is approved, then `published`; or `rejected`, or `withdrawn`. It is asked for each time."""
        return self._read_status() or self._read_manifest().status.value

    @cached_property
    def report(self) -> PublicReport:
        """What the release promises, and what it does not."""
        # a held one has none yet
        _ = self.manifest
        report = get_release_report.sync(self._uuid, client=self._client)
        assert isinstance(report, PublicReport)
        return report

    @cached_property
    def frames(self) -> Mapping[str, Mapping[str, Frame]]:
        """The parts by table and part; `bucket` ties the parts of one table."""
        return {table.name: {part.name: self._part(table.name, part) for part in table.parts} for table in self.manifest.tables}

    def table(self, name: str) -> Frame:
        """A table as one frame. Where it has several parts, the service matches their rows within buckets at random: the rows
        are synthetic, and say nothing that the parts do not say."""
        table = next((table for table in self.manifest.tables if table.name == name), None)
        if table is None:
            raise KeyError(name)
        if len(table.parts) == 1:
            return self.frames[name][table.parts[0].name]
        return self._parquet(name, table.parts[0].name, view=PartView.LINKED)

    @property
    def _uuid(self) -> UUID:
        return UUID(self.id)

    def _parquet(self, table: str, part: str, **query: Any) -> Frame:
        answer = download_part_parquet.sync_detailed(self._uuid, table, part, client=self._client, **query)
        return self._read(answer.content)

    def _part(self, table: str, part: ManifestPart) -> Frame:
        if self._check:
            csv = download_part_csv.sync_detailed(self._uuid, table, part.name, client=self._client).content
            if hashlib.sha256(csv).hexdigest() != part.sha256:
                raise damaged(f"the bytes of {part.file}")
        frame = self._parquet(table, part.name)
        if list(frame.columns) != ["bucket"] * part.bucketed + part.attributes:
            raise damaged(f"the columns of {table}/{part.name}")
        if len(frame) != part.rows:
            raise damaged(f"the number of rows of {table}/{part.name}")
        return frame


def damaged(what: str) -> Damaged:
    return Damaged(local("damaged", "damaged", f"{what} are not what the manifest says"))
