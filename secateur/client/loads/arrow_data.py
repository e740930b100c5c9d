"""Converts table-like objects to Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.arrow_form import inferred_array
from secateur.partitioning.types.coerce import package_of
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.default_value import DefaultValue
from secateur.partitioning.types.python_column import column_of
from secateur.partitioning.types.sql_text import text_literal

_CHUNK_BYTES: Final = 32 << 20
_NOT_IN_ARROW: Final = frozenset({"Int128", "Object", "UInt128"})
"""Types of polars; Arrow is given addresses for objects."""
_CHUNK_ROWS: Final = 1 << 20  # rows may grow when they are converted: a dictionary-encoded column has its texts once


def as_table(
    data: Any,
    types: Mapping[str, SqlType] = MappingProxyType({}),
    *,
    rows_name_all: bool = False,
    defaults: Mapping[str, DefaultValue] = MappingProxyType({}),
    now: datetime | None = None,
) -> pa.Table | pa.RecordBatchReader:
    """Convert an object to an Arrow table.

    It may come from pyarrow, datasets included, from pandas, polars, lazy frames included, anything else with
    ``__arrow_c_stream__``, or be a list or iterator of batches, a mapping of column names to values, or a list of rows.

    Arrow data are not copied. A RecordBatchReader is returned as it is: it is read once, batch by batch, and so is an
    iterator of batches, whose first one is taken now. Rows are mappings of column names to values; an empty list is no
    rows. Python values, also those in a column of pandas, are converted one by one.

    Args:
        data: The object.
        types: The types of the columns that are known, by their names without regard to case; those of other Python
            values are inferred.
        rows_name_all: Whether a row that does not name a column of another row is an error; else it has NULL there.
        defaults: What such a row has in a column instead, by the names of ``types``.
        now: The time of these, in UTC; None for the time of the call.

    Raises:
        DataError: It is none of these, or its values do not convert.
    """
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    try:
        package = package_of(type(data))
        if package == "pandas" and hasattr(data, "columns"):
            named = [(str(name), data.iloc[:, at]) for at, name in enumerate(data.columns)]
            return _of_columns(named, types)
        if package == "polars" and hasattr(data, "collect"):
            data = data.collect()
        if package == "polars" and not _NOT_IN_ARROW.isdisjoint(map(str, getattr(data, "dtypes", ()))):
            return _of_columns([(series.name, series.to_list()) for series in data], types)
        if package == "pyarrow" and hasattr(data, "scanner"):
            return data.scanner().to_reader()
        if isinstance(data, Mapping):
            return _of_columns(data.items(), types)
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            return pa.table(data)
        if isinstance(data, (list, tuple)) and data and all(isinstance(part, pa.RecordBatch) for part in data):
            return pa.Table.from_batches(data)
        if isinstance(data, Iterator):
            return _reader_of(data)
        if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
            names = list(dict.fromkeys(name for row in data for name in row))
            if rows_name_all:
                _check_names(data, [name for name in names if name.casefold() not in defaults])
            now = now or datetime.now(UTC)
            named = [(name, _named(data, name, defaults.get(name.casefold()), now)) for name in names]
            return _of_columns(named, types)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"the {type(data).__name__} does not convert to Arrow: {error}") from error
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        raise DataError(
            f"{path!r} is a path, and rows or columns are needed: TableHandle.load takes paths, and so does COPY table"
            f" FROM {text_literal(str(path))}"
        )
    kinds = (
        "a pyarrow Table, RecordBatch or RecordBatchReader, a list or iterator of RecordBatches, a pandas or polars"
        " DataFrame, a dict of columns, or a list of dicts, one a row"
    )
    raise DataError(f"a {type(data).__module__}.{type(data).__qualname__} is not a table: pass {kinds}")


def _named(rows: Sequence[Mapping[str, Any]], name: str, default: DefaultValue | None, now: datetime) -> list[Any]:
    """The values of one column of rows, of which some may not name it."""
    if default is None:
        return [row.get(name) for row in rows]
    made = iter(default.values(sum(name not in row for row in rows), now))
    return [row[name] if name in row else next(made) for row in rows]


def _check_names(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    for number, row in enumerate(rows, 1):
        lacking = [name for name in names if name not in row]
        if lacking:
            raise DataError(
                f"row {number} does not name {', '.join(map(repr, lacking))}, which other rows name: load rows that"
                " name other columns apart, or pass missing='null' to have NULL there",
                column=lacking[0],
                row=number,
            )


def _of_columns(columns: Iterable[tuple[str, Any]], types: Mapping[str, SqlType]) -> pa.Table:
    """Columns of Arrow, pandas, numpy or Python values, as a table."""
    names, found = [], []
    for name, values in columns:
        if not isinstance(name, str):
            raise TypeError(f"the name of a column is {name!r}, and should be a text")
        names.append(name)
        found.append(_column(values, types.get(name.casefold()), name))
    return pa.Table.from_arrays(found, names=names)


def _column(values: Any, type_: SqlType | None, name: str) -> Any:
    is_objects = getattr(getattr(values, "dtype", None), "hasobject", False)
    if is_objects and package_of(type(values)) == "pandas":
        values = values.to_list()
        if float in set(map(type, values)):  # NaN is pandas' NULL
            values = [None if isinstance(value, float) and value != value else value for value in values]
    elif isinstance(values, (list, tuple)) and values and isinstance(values[0], pa.Scalar):
        return pa.array(values)
    elif not is_objects and not isinstance(values, (list, tuple)):
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return values
        return pa.array(values, from_pandas=package_of(type(values)) == "pandas")
    return inferred_array(values, name=name) if type_ is None else column_of(values, type_, name=name)


def _reader_of(batches: Iterator[Any]) -> pa.RecordBatchReader:
    """Read batches as they are asked for; without any, there are no columns either.

    Raises:
        TypeError: The first one is no batch. Another one that is none, or has other columns, is a DataError when it is
            read.
    """
    first = next(batches, None)
    if first is None:
        return pa.table({}).to_reader()
    if not isinstance(first, pa.RecordBatch):
        raise TypeError(
            f"its first item is a {type(first).__qualname__}, and no pyarrow.RecordBatch; of rows make a list"
        )

    def checked() -> Iterator[pa.RecordBatch]:
        yield first
        for number, batch in enumerate(batches, 2):
            if not isinstance(batch, pa.RecordBatch) or not batch.schema.equals(first.schema):
                raise DataError(
                    f"item {number} of the batches is no RecordBatch with the columns of the first one"
                    f" ({', '.join(first.schema.names)})"
                )
            yield batch

    return pa.RecordBatchReader.from_batches(first.schema, checked())


def as_chunks(
    data: pa.Table | pa.RecordBatchReader,
    chunk_bytes: int = _CHUNK_BYTES,
    chunk_rows: int = _CHUNK_ROWS,
    check: Callable[[], None] = lambda: None,
) -> Iterator[pa.Table]:
    """Cut data into non-empty tables of about ``chunk_bytes`` and at most ``chunk_rows`` rows; slices, not copies.

    ``check`` is called with each batch, of which there may be many before the first table: it raises to end it.
    """
    if isinstance(data, pa.Table):
        yield from _slices(data, chunk_bytes, chunk_rows)
        return
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in data:
        check()
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= chunk_bytes:
            yield from _slices(pa.Table.from_batches(pending), chunk_bytes, chunk_rows)
            pending, pending_bytes = [], 0
    if pending:
        yield from _slices(pa.Table.from_batches(pending), chunk_bytes, chunk_rows)


def _slices(table: pa.Table, chunk_bytes: int, chunk_rows: int) -> Iterator[pa.Table]:
    rows = table.num_rows
    pieces = max(1, -(-table.nbytes // chunk_bytes))
    step = min(chunk_rows, max(1, -(-rows // pieces)))
    for start in range(0, rows, step):
        yield table.slice(start, step)
