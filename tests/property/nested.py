"""Random column types, nested in each other, and random values of them with NULLs at every level."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, assert_never
from uuid import UUID

import pyarrow as pa

from secateur.partitioning.types import NESTED, Field, SqlType, TypeKind, from_unscaled

__all__ = ["arrow_column", "python_form", "random_type", "random_value"]

_TEXTS: Final = ["", "a", "é", "it's", '"q"', "NULL", "{a: 1}", "[]", "x" * 300]
_NAMES: Final = ["a", "B", "key", "value", "select", "a b", 'q"q', "it's", "x.y", "é"]
_NULLS: Final = 0.2
_OTHERS: Final = {TypeKind.JSON, TypeKind.ENUM}
"""Texts of a certain form, which `tests/system/test_types_round_trip.py` has."""
_SCALARS: Final = [kind for kind in TypeKind if kind not in NESTED | _OTHERS]
_KEYS: Final = [TypeKind.VARCHAR, TypeKind.INTEGER, TypeKind.DATE, TypeKind.UUID, TypeKind.BOOLEAN]


def random_type(rng: random.Random, levels: int = 3) -> SqlType:
    """A column type with at most so many levels of nesting."""
    shape = rng.randrange(5) if levels else 0
    match shape:
        case 1:
            return SqlType(TypeKind.LIST, element=random_type(rng, levels - 1))
        case 2:
            names = rng.sample(_NAMES, rng.randint(1, 4))
            return SqlType(TypeKind.STRUCT, fields=tuple(Field(name, random_type(rng, levels - 1)) for name in names))
        case 3:
            return SqlType.map_of(SqlType(rng.choice(_KEYS)), random_type(rng, levels - 1))
        case 4:
            return SqlType(TypeKind.ARRAY, element=random_type(rng, levels - 1), length=rng.randint(1, 3))
        case _:
            kind = rng.choice(_SCALARS)
            if kind is not TypeKind.DECIMAL:
                return SqlType(kind)
            precision = rng.choice([4, 9, 18, 19, 38])
            return SqlType(kind, precision, rng.randint(0, precision))


def random_value(rng: random.Random, type_: SqlType, *, nullable: bool = True) -> Any:
    """A canonical value; None is NULL."""
    if nullable and rng.random() < _NULLS:
        return None
    match type_.kind:
        case TypeKind.LIST:
            return [random_value(rng, type_.parts[0]) for _ in range(rng.randrange(4))]
        case TypeKind.ARRAY:
            return [random_value(rng, type_.parts[0]) for _ in range(type_.length)]
        case TypeKind.STRUCT:
            return {field.name: random_value(rng, field.type) for field in type_.fields}
        case TypeKind.MAP:
            key, value = type_.parts
            keys = {random_value(rng, key, nullable=False) for _ in range(rng.randrange(4))}
            return [(one, random_value(rng, value)) for one in sorted(keys)]
        case TypeKind.BOOLEAN:
            return rng.random() < 0.5
        case TypeKind.FLOAT | TypeKind.DOUBLE:
            return rng.choice([0.0, 1.5, -(2.0**60), math.inf])
        case TypeKind.DECIMAL:
            return from_unscaled(rng.choice([0, 1, -1, rng.randrange(10**type_.precision)]), type_.scale)
        case TypeKind.VARCHAR:
            return rng.choice(_TEXTS)
        case TypeKind.BLOB:
            return rng.randbytes(rng.randrange(4))
        case TypeKind.DATE:
            return date.min + timedelta(rng.randrange(3_600_000))
        case TypeKind.TIME:
            return time(rng.randrange(24), rng.randrange(60), rng.randrange(60), rng.randrange(10**6))
        case TypeKind.TIMESTAMP:
            return datetime(1970, 1, 1) + timedelta(rng.randrange(-300_000, 300_000), 0, rng.randrange(86_400 * 10**6))
        case TypeKind.TIMESTAMPTZ:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
                rng.randrange(-300_000, 300_000), 0, rng.randrange(9**9)
            )
        case TypeKind.TIMESTAMP_S:
            return datetime(1970, 1, 1) + timedelta(rng.randrange(-300_000, 300_000), rng.randrange(86_400))
        case TypeKind.TIMESTAMP_MS:
            return datetime(1970, 1, 1) + timedelta(rng.randrange(-300_000, 300_000), 0, 1000 * rng.randrange(9**8))
        case TypeKind.TIMESTAMP_NS:  # of microseconds, which Python has
            return datetime(1970, 1, 1) + timedelta(rng.randrange(-100_000, 100_000), 0, rng.randrange(9**9))
        case TypeKind.INTERVAL:
            return timedelta(rng.randrange(-100, 100), 0, rng.randrange(10**6))
        case TypeKind.UUID:
            return UUID(int=rng.getrandbits(128))
        case TypeKind.HUGEINT:
            return rng.choice([0, -1, 10**38 - 1, 1 - 10**38])
        case _ if type_.is_integer:
            return rng.choice([*type_.integer_range, 0, 7])
        case _:
            assert_never(type_.kind)  # type: ignore[arg-type]


def arrow_column(values: list[Any], type_: SqlType) -> pa.Array:
    """Canonical values as a user's Arrow data: UUIDs are texts, at any depth."""
    return pa.array([_with_texts(value, type_) for value in values], _with_text_type(type_))


def python_form(value: Any, type_: SqlType) -> Any:
    """A canonical value as a cursor gives it: the same, but a MAP is a dict."""
    return _mapped(value, type_, lambda found, kind: dict(found) if kind is TypeKind.MAP else found)


def _with_texts(value: Any, type_: SqlType) -> Any:
    def leaf(found: Any, kind: TypeKind) -> Any:
        if kind is TypeKind.INTERVAL:
            return (0, found.days, (found.seconds * 10**6 + found.microseconds) * 1000)
        return str(found) if kind is TypeKind.UUID else found

    return _mapped(value, type_, leaf)


def _mapped(value: Any, type_: SqlType, leaf: Callable[[Any, TypeKind], Any]) -> Any:
    if value is None:
        return None
    match type_.kind:
        case TypeKind.LIST | TypeKind.ARRAY:
            found: Any = [_mapped(item, type_.parts[0], leaf) for item in value]
        case TypeKind.STRUCT:
            found = {field.name: _mapped(value[field.name], field.type, leaf) for field in type_.fields}
        case TypeKind.MAP:
            key, item = type_.parts
            found = [(_mapped(one, key, leaf), _mapped(other, item, leaf)) for one, other in value]
        case _:
            found = value
    return leaf(found, type_.kind)


def _with_text_type(type_: SqlType) -> pa.DataType:
    match type_.kind:
        case TypeKind.LIST:
            return pa.list_(_with_text_type(type_.parts[0]))
        case TypeKind.ARRAY:
            return pa.list_(_with_text_type(type_.parts[0]), type_.length)
        case TypeKind.STRUCT:
            return pa.struct([pa.field(field.name, _with_text_type(field.type)) for field in type_.fields])
        case TypeKind.MAP:
            return pa.map_(*map(_with_text_type, type_.parts))
        case TypeKind.UUID:
            return pa.string()
        case _:
            return type_.arrow
