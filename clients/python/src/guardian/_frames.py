"""Frames as Parquet, and back. Either library is imported only if its frames are used."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import pandas
    import polars

Frame = TypeVar("Frame", "pandas.DataFrame", "polars.DataFrame")


def to_parquet(frame: Any) -> bytes:
    """The bytes are equal for equal frames, as keys are made of them."""
    library = _library(type(frame))
    names = [name for name in frame.columns if not isinstance(name, str)]
    if names:
        raise TypeError(f"names of columns are texts, and {names[0]!r} is none")
    buffer = io.BytesIO()
    if library == "polars":
        frame.write_parquet(buffer, compression="zstd")
        return buffer.getvalue()
    import pyarrow
    import pyarrow.parquet

    if list(frame.index.names) != [None]:
        raise ValueError("the index has names: reset_index() makes columns of it, reset_index(drop=True) leaves it out")
    # the metadata names the versions of libraries
    table = pyarrow.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def reader(kind: type[Frame]) -> Callable[[bytes], Frame]:
    """Reads Parquet as frames of a library."""
    if _library(kind) == "polars":
        import polars

        return lambda parquet: cast(Any, polars.read_parquet(io.BytesIO(parquet)))
    import pandas
    import pyarrow
    import pyarrow.parquet

    # integers stay integers where values are missing
    nullable = {
        pyarrow.bool_(): pandas.BooleanDtype(),
        pyarrow.float64(): pandas.Float64Dtype(),
        pyarrow.int64(): pandas.Int64Dtype(),
        pyarrow.string(): pandas.StringDtype(),
    }

    def read(parquet: bytes) -> Any:
        # in this thread alone: one of Arrow's that drops a file of Python's while Python ends aborts the process
        file = pyarrow.parquet.ParquetFile(io.BytesIO(parquet), pre_buffer=False)
        return file.read(use_threads=False).to_pandas(types_mapper=nullable.get)

    return read


def _library(kind: type[Any]) -> str:
    for base in kind.__mro__:
        library = base.__module__.split(".")[0]
        if base.__name__ == "DataFrame" and library in ("pandas", "polars"):
            return library
    raise TypeError(f"a frame is a DataFrame of pandas or polars, not {kind.__module__}.{kind.__qualname__}")
