"""Python values as a column of a type, each converted exactly or refused with its row.

Columns to which Arrow has no conversion are computed here too: UUIDs out of texts or bytes, and decimals out of floats.

:mod:`~secateur.partitioning.types.coerce` says which values convert. Arrow's own conversion is not used for values that
are not canonical: it cuts off the fraction of a number and the time of a day without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DataError
from secateur.partitioning.types.arrow_layout import fixed_width, in_fixed_lists, spread
from secateur.partitioning.types.coerce import CERTAIN_TEXTS, UUID_TEXT, coerce, is_missing, rounded_floats
from secateur.partitioning.types.column_type import EXACT_INTEGERS, WORD_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.decimals import unscaled
from secateur.partitioning.types.json_text import is_json

_SAME: Final[dict[TypeKind, type]] = {
    **dict.fromkeys(WORD_INTEGERS, int),
    TypeKind.BOOLEAN: bool,
    TypeKind.VARCHAR: str,
    TypeKind.JSON: str,
    TypeKind.ENUM: str,
    TypeKind.BLOB: bytes,
    TypeKind.DOUBLE: float,
    TypeKind.DATE: date,
    TypeKind.TIMESTAMP: datetime,
    TypeKind.DECIMAL: Decimal,
}
"""The Python types whose values need no cast; integers are taken by their range, JSON and ENUM where they are valid."""

_CAST_ALIKE: Final[dict[TypeKind, frozenset[type]]] = {
    TypeKind.FLOAT: frozenset({float, int}),
    TypeKind.DOUBLE: frozenset({int}),
    TypeKind.DECIMAL: frozenset({int}),
    TypeKind.HUGEINT: frozenset({int}),
    TypeKind.UUID: frozenset({UUID, str}),
    TypeKind.DATE: frozenset({str}),
    TypeKind.TIME: frozenset({time, str}),
    TypeKind.TIMESTAMP: frozenset({str}),
    TypeKind.TIMESTAMPTZ: frozenset({datetime, str}),
}
"""Python types whose values DuckDB casts as :func:`~.coerce.coerce` converts them: those that it does not refuse. To
have DuckDB cast them at the controller takes twenty times as long as all else that an INSERT of one row does. Of texts,
they are those of which that is certain."""
_UUID_TEXT_BYTES: Final = 36


def as_they_stand(values: list[Any], column_type: SqlType, *, column: str | None = None) -> pa.Array | None:
    """Values as a column, if each is NULL or of the column's type without a cast; else None.

    Lists of doubles are values of an ARRAY of FLOAT or DOUBLE, whose cast rounds each as DuckDB's does.

    Raises:
        DataError: A list of doubles has another length than the ARRAY, and ``column`` is given: the message names it.
    """
    if column_type.kind is TypeKind.ARRAY and column_type.element is not None and column_type.element.is_float:
        return _fixed_lists(values, column_type, column)
    if not _need_no_cast(values, column_type):
        also = _CAST_ALIKE.get(column_type.kind, frozenset())
        if also.isdisjoint(map(type, values)):
            return None
        try:
            return canonical_column([canonical_as_it_stands(value, column_type) for value in values], column_type)
        except (DataError, pa.ArrowException, OverflowError, ValueError):
            return None
    try:
        return pa.array(values, column_type.arrow)
    except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
        # out of range, too many digits, not UTF-8: only DuckDB converts it, or reports the error, as the dialect does
        return None


def _fixed_lists(values: list[Any], type_: SqlType, column: str | None) -> pa.Array | None:
    """Lists of doubles alone, or NULL, as an ARRAY; None where DuckDB has to cast them."""
    assert type_.element is not None
    given = [value for value in values if value is not None]
    if not all(type(value) is list and set(map(type, value)) <= {float} for value in given):
        return None
    for value in given:
        if len(value) != type_.length:
            return None if column is None else coerce(value, type_, column=column)  # which raises
    floats = rounded_floats(np.array(given, np.float64).reshape(-1), type_.element)
    if floats is None:
        return None
    like = pa.array([None if value is None else True for value in values], pa.bool_())
    return in_fixed_lists(pa.array(floats), like, type_.arrow)


def canonical_as_it_stands(value: Any, column_type: SqlType, *, column: str | None = None) -> Any:
    """One value as a canonical Python value, which a few are faster kept as than in Arrow.

    Raises:
        DataError: It is not one of the column's type without a cast, or not one that the type holds.
    """
    if value is None:
        return None
    has_zone = isinstance(value, datetime) and value.tzinfo is not None
    if (type(value) is not _SAME.get(column_type.kind) or has_zone) and not _is_cast_alike(value, column_type.kind):
        raise DataError(f"{value!r} ({type(value).__name__}) is no {column_type} as it stands: it needs a cast")
    return coerce(value, column_type, column=column)


def _is_cast_alike(value: Any, kind: TypeKind) -> bool:
    if type(value) not in _CAST_ALIKE.get(kind, ()):
        return False
    match value:
        case int():
            return abs(value) <= EXACT_INTEGERS.get(kind, abs(value))
        case datetime():
            return value.tzinfo is not None
        case time():
            return value.tzinfo is None
        case str():
            return CERTAIN_TEXTS[kind].fullmatch(value) is not None
        case _:
            return True


def _need_no_cast(values: list[Any], column_type: SqlType) -> bool:
    kinds = set(map(type, values)) - {type(None)}
    if not kinds <= {_SAME.get(column_type.kind)}:
        return False
    match column_type.kind:
        case TypeKind.TIMESTAMP:
            return all(value is None or value.tzinfo is None for value in values)
        case TypeKind.JSON:
            return all(value is None or is_json(value) for value in values)
        case TypeKind.ENUM:
            return set(values) <= {None, *column_type.values}
        case _:
            return True


def column_of(values: Iterable[Any], type_: SqlType, *, name: str, first_row: int = 1) -> pa.Array:
    """Convert Python values to a column.

    The values are any of Python or numpy; None, and pandas' NA and NaT, are NULL. Messages have the column's name, and
    the number of the value among the caller's rows, of which ``first_row`` is the first; they count from 1.

    Returns:
        The values as an array of exactly ``type_.arrow``.

    Raises:
        DataError: A value cannot be held exactly; ``details`` has ``column``, ``type`` and ``row``.

    Cost: some 0.05 us a value where all are of the type's own Python type, else about 1 us.
    """
    plain = without_missing(values)
    standing = as_they_stand(plain, type_)
    if standing is not None:
        return standing
    canonical = []
    for row, value in enumerate(plain, first_row):
        try:
            canonical.append(coerce(value, type_, column=name))
        except DataError as error:
            raise DataError(f"row {row}, {error.message}", column=name, type=str(type_), row=row) from error
    return canonical_column(canonical, type_)


def canonical_column(values: Sequence[Any], type_: SqlType) -> pa.Array:
    """An array of ``type_.arrow`` with values that are canonical, as :func:`~.coerce.coerce` returns them."""
    if not type_.contains((TypeKind.UUID,)):
        return pa.array(values, type_.arrow)
    # Arrow makes no lists, structs and maps of UUIDs out of Python values.
    is_null = [value is None for value in values]
    mask = pa.array(is_null) if any(is_null) else None
    match type_.kind:
        case TypeKind.ARRAY if type_.element is not None:
            gaps = [None] * type_.length
            items = canonical_column([item for value in values for item in value or gaps], type_.element)
            return pa.FixedSizeListArray.from_arrays(items, type=type_.arrow, mask=mask)
        case TypeKind.LIST if type_.element is not None:
            items = canonical_column([item for value in values for item in value or ()], type_.element)
            return pa.ListArray.from_arrays(_offsets(values), items, type=type_.arrow, mask=mask)
        case TypeKind.MAP:
            pairs = [pair for value in values for pair in value or ()]
            keys, held = (canonical_column([pair[at] for pair in pairs], part) for at, part in enumerate(type_.parts))
            return pa.MapArray.from_arrays(_offsets(values), keys, held, type=type_.arrow, mask=mask)
        case TypeKind.STRUCT:
            fields = [
                canonical_column([None if value is None else value[field.name] for value in values], field.type)
                for field in type_.fields
            ]
            return pa.StructArray.from_arrays(fields, fields=list(type_.arrow), mask=mask)
        case _:
            stored = [None if value is None else value.bytes for value in values]
            return pa.ExtensionArray.from_storage(type_.arrow, pa.array(stored, type_.arrow.storage_type))


def without_missing(values: Iterable[Any]) -> list[Any]:
    """Values with None in place of pandas' NA and NaT."""
    given = values if isinstance(values, list) else list(values)
    missing = set(filter(is_missing, set(map(type, given))))
    return [None if type(value) in missing else value for value in given] if missing else given


def _offsets(values: Sequence[Any]) -> pa.Array:
    lengths = [0 if value is None else len(value) for value in values]
    return pa.array(np.cumsum([0, *lengths]), pa.int32())


def wrap_uuids(array: pa.Array) -> pa.Array:
    """Take binary values of 16 bytes for UUIDs.

    Raises:
        pa.ArrowInvalid: A value has another number of bytes.
    """
    return pa.ExtensionArray.from_storage(pa.uuid(), array.cast(pa.binary()).cast(pa.binary(16)))


def parse_uuids(array: pa.Array) -> pa.Array:
    """Parse 8-4-4-4-12 text without a Python object per row.

    Raises:
        ValueError: A text is something else.
    """
    present = array.drop_null()
    if not pc.all(pc.match_substring_regex(present, rf"\A{UUID_TEXT.pattern}\z"), min_count=0).as_py():
        raise ValueError("a text is no UUID: 8-4-4-4-12 hexadecimal digits")
    texts = fixed_width(present.cast(pa.large_binary()).cast(pa.binary(_UUID_TEXT_BYTES)), f"S{_UUID_TEXT_BYTES}")
    raw = bytes.fromhex(texts.tobytes().replace(b"-", b"").decode())
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(present), [None, pa.py_buffer(raw)])
    if array.null_count:
        values = spread(values, array.is_valid().to_numpy(zero_copy_only=False))
    return pa.ExtensionArray.from_storage(pa.uuid(), values)


def decimals_of_floats(type_: SqlType) -> Callable[[pa.Array], pa.Array]:
    """Return the conversion of float arrays to DECIMAL or HUGEINT.

    19.99 has no float of its own, and everybody who writes 19.99 as a float means it. So a float is the decimal of the
    column's scale of which it is the nearest float, as for :mod:`~secateur.partitioning.types.coerce`, which decides
    about numbers of more digits than all floats tell apart, and raises a DataError for a float that is none.

    Cost: some 30 ns a value, and 2 us for one with many digits.
    """
    scale, power = type_.scale, 10.0**type_.scale

    def convert(array: pa.Array) -> pa.Array:
        floats = array.fill_null(0).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            units = np.rint(floats.astype(np.float64) * power)
            # Two numbers of so few digits are never the same float.
            digits_max = min(type_.precision or 38, np.finfo(floats.dtype).precision)
            is_plain = np.abs(units) < 10.0**digits_max
            is_plain &= (units / power).astype(floats.dtype) == floats
        words = np.zeros((len(floats), 2), "<i8")
        words[is_plain, 0] = units[is_plain].astype(np.int64)
        words[:, 1] = words[:, 0] >> 63
        for row in np.flatnonzero(~is_plain).tolist():
            number = coerce(floats[row], type_)
            whole = number if type_.kind is TypeKind.HUGEINT else unscaled(number, scale)
            words[row] = np.frombuffer(whole.to_bytes(16, "little", signed=True), "<i8")
        values = pa.Array.from_buffers(type_.arrow, len(floats), [None, pa.py_buffer(words)])
        return values if not array.null_count else pc.if_else(array.is_valid(), values, pa.scalar(None, type_.arrow))

    return convert
