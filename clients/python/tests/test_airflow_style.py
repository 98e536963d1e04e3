"""The example, with each task run twice."""

from pathlib import Path

import airflow_style
import polars
from test_publish import columns, document, population

__all__ = ["population"]


def test_tasks_can_be_run_again(tmp_path: Path) -> None:
    source = tmp_path / "night.csv"
    polars.DataFrame(columns()).write_csv(source)
    for _ in range(2):
        table = airflow_style.extract(source, tmp_path)
    airflow_style.plan(table, document(), "python-client")
    releases = {airflow_style.publish(table, document(), "python-client") for _ in range(2)}
    assert len(releases) == 1
    for _ in range(2):
        loaded = airflow_style.load(releases.copy().pop(), tmp_path)
    assert loaded and all(polars.read_parquet(path).height == 6 for path in loaded)
