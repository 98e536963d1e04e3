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
from ._problems import Damaged, local


class Release(Generic[Frame]):
    """A release: its manifest at once, its report and frames when they are asked for."""

    def __init__(self, client: AuthenticatedClient, manifest: Manifest, kind: type[Frame], check: bool) -> None:
        self._client, self._check = client, check
        self._read: Callable[[bytes], Frame] = reader(kind)
        self.manifest = manifest

    @property
    def id(self) -> str:
        return str(self.manifest.id)

    @property
    def status(self) -> str:
        """`held` until it is approved, then `published`; as it was when the manifest was read."""
        return self.manifest.status.value

    @cached_property
    def report(self) -> PublicReport:
        """What the release promises, and what it does not."""
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
