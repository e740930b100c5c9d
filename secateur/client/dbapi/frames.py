"""Results as data frames of pandas and polars, which hold other values than Arrow does.

Two columns of one name become ``a`` and ``a_1``, as DuckDB names them. What a frame cannot hold is an error that names
the column: pandas gives numbers for instants inside of a STRUCT that Python's calendar lacks, and polars panics when it
prints a day that is beyond its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DataError, NotSupportedError
from secateur.partitioning.types.arrow_layout import interval_cells, leaves, map_leaves
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX
from secateur.partitioning.types.result_type import column_type_of
from secateur.partitioning.types.sql_text import told_apart
from secateur.protocol.statements import ResultColumn

_CALENDAR_OF_PYTHON: Final = range(-719_162, 2_932_897)
"""Days from 1970 on: the years 1 to 9999."""
_CALENDAR_OF_POLARS: Final = range(-96_465_292, 95_026_237)
"""The years -262143 to 262142, which Rust's chrono has."""
_INFINITE_DAYS: Final = 2**31 - 1
_PER_DAY: Final = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_DAY_US: Final = _PER_DAY["us"]
_DAYS_PER_MONTH: Final = 30
_INTERVAL: Final = pa.month_day_nano_interval()
_DURATION: Final = pa.duration("us")


def pandas_frame(take: Callable[[], pa.Table]) -> Any:
    """Rows as a pandas DataFrame. DATE is ``datetime.date``, or ``datetime64`` in a column beyond Python's calendar.

    Of its own pandas makes floats of integers beside a NULL: a column in which that would change one is ``Int64``.

    Args:
        take: Gives the rows, once the library is found.

    Raises:
        NotSupportedError: pandas is not installed.
        DataError: A value that it cannot hold.
    """
    try:
        import pandas
    except ImportError as error:
        raise NotSupportedError("df() needs pandas: pip install pandas, or use fetch_arrow_table()") from error
    table = _told_apart(take())
    exactly: dict[pa.DataType, Any] = {pa.int64(): pandas.Int64Dtype(), pa.uint64(): pandas.UInt64Dtype()}
    options: dict[str, dict[str, Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _has(column.type, pa.types.is_struct, pa.types.is_map):
            _check_days(column, name, _CALENDAR_OF_PYTHON, "pandas")
        elif _has(column.type, pa.types.is_date):
            _check_days(column, name, range(1 - _INFINITE_DAYS, _INFINITE_DAYS), "pandas")
            if not _is_within(column, _CALENDAR_OF_PYTHON):
                options[name] = {"date_as_object": False}
        if _are_no_doubles(column):
            options.setdefault(name, {}).update(integer_object_nulls=True, types_mapper=exactly.get)
    nested = {field.name for field in table.schema if _has_uuids_inside(field.type)}
    if not options and not nested:
        return _to_pandas(table)
    return pandas.DataFrame(
        {
            name: pandas.Series(table.column(name).to_pylist(), dtype=object)
            if name in nested
            else _to_pandas(table.select([name]), **options.get(name, {}))[name]
            for name in table.column_names
        }
    )


def _to_pandas(table: pa.Table, **options: Any) -> Any:
    try:
        return table.to_pandas(**options)
    except pa.ArrowException:
        for name in table.column_names if table.num_columns > 1 else ():
            _to_pandas(table.select([name]), **options)
        raise _not_held(table.column_names[0], "a value", "pandas") from None


def _are_no_doubles(column: pa.ChunkedArray) -> bool:
    """Whether there are NULLs beside integers that a DOUBLE does not hold."""
    if not _has(column.type, pa.types.is_int64, pa.types.is_uint64):
        return False
    for leaf in (leaf for chunk in column.chunks for leaf in leaves(chunk)):
        if pa.types.is_integer(leaf.type) and leaf.null_count and leaf.null_count < len(leaf):
            least, greatest = pc.min_max(leaf).as_py().values()
            if max(-least, greatest) > DOUBLE_INTEGER_MAX:
                return True
    return False


def _has_uuids_inside(kind: pa.DataType) -> bool:
    """Whether the values have parts that are UUIDs, of which pandas is given bytes, or none at all."""
    return bool(pa.types.is_nested(kind)) and _has(kind, lambda part: isinstance(part, pa.UuidType))


def polars_frame(take: Callable[[], pa.Table]) -> Any:
    """Rows as a polars DataFrame. INTERVAL is a duration with months of 30 days, as everywhere in Python.

    Args:
        take: Gives the rows, once the library is found.

    Raises:
        NotSupportedError: polars is not installed.
        DataError: A value that it cannot hold.
    """
    try:
        import polars
    except ImportError as error:
        raise NotSupportedError("pl() needs polars: pip install polars, or use fetch_arrow_table()") from error
    table = _told_apart(take())
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        _check_days(column, name, _CALENDAR_OF_POLARS, "polars")
        columns.append(_with_durations(column, name))
    return polars.from_arrow(pa.Table.from_arrays(columns, names=table.column_names))


def _told_apart(table: pa.Table) -> pa.Table:
    return table.rename_columns(list(told_apart(table.column_names)))


def _has(kind: pa.DataType, *tests: Any) -> bool:
    """Whether a type, or one inside of it, is of a kind."""
    return any(test(kind) for test in tests) or any(
        _has(kind.field(index).type, *tests) for index in range(kind.num_fields)
    )


def _is_within(column: pa.ChunkedArray, days: range) -> bool:
    return all(
        not len(values) or days.start * unit <= int(values.min()) <= int(values.max()) < days.stop * unit
        for values, unit in _instants(column)
    )


def _instants(column: pa.ChunkedArray) -> Iterator[tuple[np.ndarray[Any, Any], int]]:
    """All days and instants of a column, as numbers, with how many of these a day has."""
    if _has(column.type, pa.types.is_date, pa.types.is_timestamp):
        for leaf in (leaf for chunk in column.chunks for leaf in leaves(chunk)):
            if pa.types.is_date32(leaf.type):
                yield leaf.drop_null().view(pa.int32()).to_numpy(), 1
            elif pa.types.is_timestamp(leaf.type):
                yield leaf.drop_null().view(pa.int64()).to_numpy(), _PER_DAY[leaf.type.unit]


def _check_days(column: pa.ChunkedArray, name: str, days: range, library: str) -> None:
    if not _is_within(column, days):
        raise _not_held(name, "a day or an instant", library)


def _with_durations(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    if not _has(column.type, pa.types.is_interval):
        return column

    def duration(leaf: pa.Array) -> pa.Array:
        if leaf.type != _INTERVAL:
            return leaf
        cells = interval_cells(leaf)
        days = cells["months"].astype(np.int64) * _DAYS_PER_MONTH + cells["days"]
        valid = leaf.is_valid().to_numpy(zero_copy_only=False)
        if (np.abs(days[valid]) > _CALENDAR_OF_POLARS.stop).any():
            raise _not_held(name, "an INTERVAL", "polars")
        return pa.array(days * _DAY_US + cells["nanoseconds"] // 1000, mask=~valid).view(_DURATION)

    parts = [map_leaves(chunk, duration) for chunk in column.chunks or [pa.array([], column.type)]]
    return pa.chunked_array(parts)


def _not_held(name: str, what: str, library: str) -> DataError:
    return DataError(
        f"column {name!r} has {what} that {library} cannot hold: read it with fetch_arrow_table(), or CAST it to"
        " VARCHAR",
        column=name,
    )


_INDEXES: tuple[tuple[int, pa.DataType], ...] = ((2**8, pa.uint8()), (2**16, pa.uint16()), (2**32, pa.uint32()))


def with_categories(table: pa.Table, columns: Iterable[ResultColumn], *, ordered: bool = False) -> pa.Table:
    """The rows of a result with each column of ENUM as a dictionary of its values, in their order.

    So does DuckDB, and a library shows these as its categories.

    Args:
        table: The rows.
        columns: Its columns. Those that have an ENUM inside stay texts.
        ordered: Whether the dictionaries say that their order counts.
    """
    for position, type_ in _enums(columns):
        values, field = _values(type_), table.schema.field(position)
        kind = pa.dictionary(_index_type(values), values.type, ordered)
        column = table.column(position)
        chunks = [
            pa.DictionaryArray.from_arrays(pc.index_in(chunk, values).cast(kind.index_type), values, ordered=ordered)
            for chunk in column.chunks
        ]
        table = table.set_column(position, field.with_type(kind), pa.chunked_array(chunks, kind))
    return table


def schema_with_categories(schema: pa.Schema, columns: Iterable[ResultColumn]) -> pa.Schema:
    """The schema of :func:`with_categories`."""
    for position, type_ in _enums(columns):
        values = _values(type_)
        kind = pa.dictionary(_index_type(values), values.type)
        schema = schema.set(position, schema.field(position).with_type(kind))
    return schema


def _enums(columns: Iterable[ResultColumn]) -> list[tuple[int, SqlType]]:
    found: Sequence[SqlType | None] = [
        column_type_of(column.type) if column.type.startswith("ENUM(") else None for column in columns
    ]
    return [(at, type_) for at, type_ in enumerate(found) if type_ is not None and type_.kind is TypeKind.ENUM]


def _values(type_: SqlType) -> pa.Array:
    return pa.array(type_.values, pa.string())


def _index_type(values: pa.Array) -> pa.DataType:
    return next(kind for count, kind in _INDEXES if len(values) < count)
