"""Tasks of a scheduler, as plain functions: each can be run again, and passes on only a path or an id.

The service is at GUARDIAN_URL, and the key in GUARDIAN_KEY. A scheduler repeats a task after `Unavailable`; any other `Refused`
needs a person.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars

from guardian import Guardian, Refused


def service() -> Guardian:
    return Guardian(os.environ["GUARDIAN_URL"], os.environ["GUARDIAN_KEY"])


def extract(source: Path, folder: Path) -> Path:
    """The table of the day, kept as it was so that later tasks see the same bytes."""
    table = folder / f"{source.stem}.parquet"
    write(polars.read_csv(source), table)
    return table


def plan(table: Path, specification: Mapping[str, Any], population: str) -> None:
    with service() as guardian:
        plan = guardian.plan(polars.read_parquet(table), specification=specification, population=population)
    if not plan.feasible:
        raise Refused(plan.problems[0])


def publish(table: Path, specification: Mapping[str, Any], population: str) -> str:
    with service() as guardian:
        return guardian.publish(polars.read_parquet(table), specification=specification, population=population).id


def load(release: str, folder: Path) -> list[Path]:
    with service() as guardian:
        frames = guardian.release(release, polars.DataFrame).frames
    parts = {f"{table}.{part}.parquet": frame for table, parts in frames.items() for part, frame in parts.items()}
    for name, frame in parts.items():
        write(frame, folder / name)
    return [folder / name for name in parts]


def write(frame: polars.DataFrame, path: Path) -> None:
    """A file is whole or absent."""
    partial = path.with_suffix(".partial")
    frame.write_parquet(partial)
    partial.replace(path)
