"""Values that the dialect has but no column or result can hold: times and intervals that Arrow cannot carry.

- ``TIME '24:00:00'``, the end of a day: Arrow's and Python's last time is 23:59:59.999999.
- An INTERVAL whose part below days is longer than 2^63 nanoseconds, 292 years in hours: DuckDB multiplies its
  microseconds by 1000 for Arrow, and the product wraps around. The Arrow value does not show it, so a condition
  inside of the query refuses it (:func:`long_interval_sql`).

Both are an error wherever they would enter or leave. Inside a query they behave as in DuckDB.

The other way, Arrow has maps with a NULL key or with one key twice. The dialect has none, so they are refused too. Nor
has it texts that are not UTF-8, which Arrow's own readers and functions let pass, nor a TIMESTAMP_S or TIMESTAMP_MS in
a year that 64 bits of microseconds do not reach: DuckDB takes it from Arrow, and a cast of it breaks the database.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.arrow_layout import has_invalid_keys, interval_cells, list_elements, map_entries
from secateur.partitioning.types.calendar import INFINITE
from secateur.partitioning.types.cast import scalar_text
from secateur.partitioning.types.column_type import TypeKind
from secateur.partitioning.types.result_type import Constructor, ResultType

_MICROSECONDS_MAX: Final = (2**63 - 1) // 1000
_DAY: Final = 86_400 * 10**6
_PER_MICROSECOND: Final = {"us": 1, "ns": 1000}
_PER_UNIT: Final = {"s": 10**6, "ms": 1000}
"""The microseconds of the units that reach years which DuckDB has not."""
_TEXT_SHOWN_MAX: Final = 80
_TYPES_CACHED_MAX: Final = 1024


def long_interval_sql(interval: str) -> str:
    """Return the condition, never NULL, that an INTERVAL is too long to be carried.

    ``interval`` is repeated three times in it, so it should be a column and not an expensive expression.
    """
    hours, minutes, rest = (f"extract({part} FROM {interval})" for part in ("hour", "minute", "microsecond"))
    total = f"{hours} * 3600000000 + {minutes} * 60000000 + {rest}"
    return f"coalesce({total} NOT BETWEEN {-_MICROSECONDS_MAX} AND {_MICROSECONDS_MAX}, false)"


def long_intervals_sql(
    value: str, kind: ResultType, depth: int = 0, of_one: Callable[[str], str] = long_interval_sql
) -> str | None:
    """Return the condition, never NULL, that a value contains an INTERVAL that is too long; None if its type cannot.

    ``of_one`` is another such condition of one INTERVAL.
    """
    if TypeKind.INTERVAL.value not in kind.text:
        return None

    def in_list(values: str, element: ResultType) -> str | None:
        element_name = f"x{depth}"
        inner = long_intervals_sql(element_name, element, depth + 1, of_one)
        if inner is None:
            return None
        return f"coalesce(list_bool_or(list_transform({values}, lambda {element_name}: {inner})), false)"

    conditions: list[str | None] = []
    match kind.constructor:
        case Constructor.SCALAR if kind.text == TypeKind.INTERVAL.value:
            conditions = [of_one(value)]
        case Constructor.SCALAR:
            pass
        case Constructor.LIST:
            conditions = [in_list(value, kind.parts[0])]
        case Constructor.STRUCT:
            names = [name.replace("'", "''") for name in kind.unquoted_names]
            conditions = [
                long_intervals_sql(f"struct_extract({value}, '{name}')", part, depth, of_one)
                for name, part in zip(names, kind.parts, strict=True)
            ]
        case Constructor.TUPLE:
            conditions = [
                long_intervals_sql(f"struct_extract({value}, {number})", part, depth, of_one)
                for number, part in enumerate(kind.parts, 1)
            ]
        case Constructor.MAP:
            keys, values = kind.parts
            conditions = [in_list(f"map_keys({value})", keys), in_list(f"map_values({value})", values)]
    return " OR ".join(condition for condition in conditions if condition is not None) or None


def guarded_interval_sql(value: str, is_long: str) -> str:
    """A value that is an error in place of one that is too long."""
    advice = (
        "is too long: an INTERVAL here has at most 2562047 hours (292 years) beside its months and days; give it in"
        " days or months, or CAST it to VARCHAR"
    )
    return (
        f"CASE WHEN {is_long} THEN error('the INTERVAL ' || left(CAST({value} AS VARCHAR), {_TEXT_SHOWN_MAX}) || '"
        f" {advice}') ELSE {value} END"
    )


def check_held(column: pa.ChunkedArray, name: str) -> None:
    """Refuse times and timestamps beyond those of the dialect, fractions of its intervals, and unusable keys of maps.

    Values inside of lists, structs and maps are checked too.

    Raises:
        DataError: It has such a value. Cost: nothing for a type that cannot have such values.
    """
    if not _may_have(column.type):
        return
    for chunk in column.chunks:
        _check(chunk, name)


@lru_cache(_TYPES_CACHED_MAX)
def _may_have(type_: pa.DataType) -> bool:
    if pa.types.is_time(type_) or type_ == pa.month_day_nano_interval() or pa.types.is_map(type_):
        return True
    if pa.types.is_timestamp(type_):
        return type_.unit in _PER_UNIT
    return any(_may_have(type_.field(index).type) for index in range(type_.num_fields))


def _check(array: pa.Array, name: str) -> None:
    kind = array.type
    if not _may_have(kind) or not len(array):
        return
    if pa.types.is_time64(kind):
        _check_times(array, name)
    elif pa.types.is_timestamp(kind):
        _check_years(array, name)
    elif kind == pa.month_day_nano_interval():
        _check_intervals(array, name)
    elif pa.types.is_struct(kind):
        for field in array.flatten():
            _check(field, name)
    elif pa.types.is_map(kind):
        if has_invalid_keys(array):
            raise DataError(
                f"column {name!r} has a MAP with a NULL key, or with one key twice, which the type does not have: give"
                " each key once",
                column=name,
            )
        _, keys, items = map_entries(array)
        _check(keys, name)
        _check(items, name)
    elif pa.types.is_nested(kind):
        _check(list_elements(array), name)


def _check_times(array: pa.Array, name: str) -> None:
    present = array.drop_null().view(pa.int64()).to_numpy()
    end = _DAY * _PER_MICROSECOND[array.type.unit]
    if len(present) and not 0 <= int(present.min()) <= int(present.max()) < end:
        shown = "TIME '24:00:00'" if int(present.max()) == end else "a TIME that is none of a day"
        raise DataError(
            f"column {name!r} has {shown}, and the last one here is 23:59:59.999999: use '00:00:00', or CAST it to"
            " VARCHAR",
            column=name,
        )


def _check_years(array: pa.Array, name: str) -> None:
    present = array.drop_null().view(pa.int64()).to_numpy()
    last = INFINITE // _PER_UNIT[array.type.unit]
    if ((np.abs(present) > last) & (np.abs(present) != INFINITE)).any():
        raise DataError(
            f"column {name!r} has an instant in a year that timestamps here do not have: they reach from 290308 BC to"
            " 294247",
            column=name,
        )


def _check_intervals(array: pa.Array, name: str) -> None:
    if (interval_cells(array)["nanoseconds"][array.is_valid().to_numpy(zero_copy_only=False)] % 1000).any():
        raise DataError(
            f"column {name!r} has an INTERVAL with a fraction of a microsecond, which the type does not have",
            column=name,
        )


_NO_UTF8: Final = "Invalid UTF8"


def check_texts(rows: pa.Table | pa.RecordBatch, first_row: int = 1) -> None:
    """Check all columns, as :func:`check_texts_of_column` does."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        check_texts_of_column(column, name, first_row)


def check_texts_of_column(column: pa.ChunkedArray | pa.Array, name: str, first_row: int = 1) -> None:
    """Check a column, at every depth.

    Messages have the number of the row among the caller's, of which ``first_row`` is the first; they count from 1.

    Raises:
        DataError: It has a text that is not UTF-8. Cost: some 40 ns a text; nothing for a column without texts.
    """
    if not _has_texts(column.type):
        return
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid as error:
            if _NO_UTF8 in str(error):  # the rest of the array is as it should be: Arrow looks at texts last
                _refuse_first(chunk, name, first_row, error)
        first_row += len(chunk)


def _has_texts(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _has_texts(kind.value_type)
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or any(_has_texts(kind.field(index).type) for index in range(kind.num_fields))
    )


def _refuse_first(array: pa.Array, name: str, first_row: int, error: pa.ArrowInvalid) -> None:
    """Name the first row with such a text; there is none if it is outside of the slice that the array is."""
    for row, value in enumerate(array, first_row):
        try:
            value.as_py()
        except UnicodeDecodeError:
            shown = scalar_text(value)
            raise DataError(
                f"column {name}, row {row}: {shown} is no UTF-8: decode it by its own encoding, or use a BLOB",
                column=name,
                row=row,
            ) from error
        except (OverflowError, ValueError):  # a day beyond Python's calendar
            continue
