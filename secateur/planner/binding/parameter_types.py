"""The types of parameters as DuckDB's binder sees them, on which plans depend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

__all__ = ["INTEGERS", "sample_value", "types_of"]

_SPECIMEN_ELEMENTS: Final = 2
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
INTEGERS: Final = frozenset({"int32", "int64"})
"""The parts of :func:`types_of` that stand for integers: with a plan for these, only integers are executed."""


def types_of(values: Sequence[Any] | None, count: int) -> tuple[str, ...]:
    """Return the parts of values that determine DuckDB's parameter types; without values, ``count`` unbound ones."""
    return ("unbound",) * count if values is None else tuple(map(_type, values))


def sample_value(value: Any) -> Any:
    """Return a value of the same type for DuckDB's binder, which would take a list apart element by element."""
    if type(value) is list and len(value) > _SPECIMEN_ELEMENTS:
        kinds = set(map(type, value))
        if kinds in ({str}, {date}):
            return value[:1]
        if kinds == {int}:
            return [min(value), max(value)]
    return value


def _type(value: Any) -> str:
    if type(value) is int:
        return "int32" if value in _INT32 else "int64" if value in _INT64 else "int128"
    if isinstance(value, Decimal) and value.is_finite():
        _, digits, exponent = value.as_tuple()
        return f"decimal {len(digits)} {exponent}"
    if type(value) is list:
        kinds = set(map(type, value))
        if dict in kinds:
            return f"list {' '.join(sorted(set(map(_type, value))))}"
        return f"list {' '.join(sorted(kind.__name__ for kind in kinds))}"
    if type(value) is dict:
        return f"dict {', '.join(f'{name!r} {_type(item)}' for name, item in value.items())}"
    return type(value).__name__
