"""The types of parameters, by which plans are kept.

A plan is made for the types that DuckDB gives the values of its parameters: ``sum(k * $1)`` has another type, and
other stages, for 1.5 than for 1.55. Most parameters are only compared with something, or cast, and then all numbers
have one plan. So there are two readings of a value: its class, which every execution looks at, and its type, for the
parameters on whose types the plan of a text depends (:class:`~secateur.protocol.kept_plans.KeptPlans`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

_NESTED: Final = frozenset({list, dict})
_VARIED: Final = frozenset({int, Decimal, datetime})
"""Classes that are not nested, and whose values have several types."""
_DECIMAL: Final = "DECIMAL"
_DIGITS_MAX: Final = 38
_MAP: Final = frozenset({"key", "value"})


def classes_of(params: Sequence[Any] | dict[str, Any]) -> tuple[object, ...]:
    """The classes of plain parameters, with their names if they have any, and with the classes inside of nested ones.

    Cost: a quarter of a microsecond for a few values that are not nested.
    """
    if isinstance(params, dict):
        return tuple(sorted((name, _class_of(value)) for name, value in params.items()))
    classes = tuple(map(type, params))
    return classes if _NESTED.isdisjoint(classes) else tuple(map(_class_of, params))


def type_of(value: Any) -> object:
    """A name for the type that DuckDB gives a plain value: values with equal ones have equal types there.

    Cost: some tenths of a microsecond, also for each number in a list.
    """
    kind = type(value)
    if kind is int:
        return _integer(value)
    if kind is Decimal:
        return _decimal(value)
    if kind is datetime:
        return kind if value.tzinfo is None else "TIMESTAMPTZ"
    return _inside(value, type_of) if kind in _NESTED else kind


def _class_of(value: Any) -> object:
    kind = type(value)
    return _inside(value, _class_of) if kind in _NESTED else kind


def _inside(value: list[Any] | dict[str, Any], of: Callable[[Any], object]) -> object:
    """A dict by what it has under its names, a list by the different elements that it has."""
    if isinstance(value, dict):
        # Lists of one length under these names are a MAP, others a STRUCT.
        is_map = value.keys() == _MAP and len({len(item) for item in value.values() if type(item) is list}) == 1
        return dict, is_map, *((name, of(item)) for name, item in value.items())
    kinds = frozenset(map(type, value))
    if not _NESTED.isdisjoint(kinds):
        return list, *dict.fromkeys(map(of, value))  # in order, since a STRUCT of several has its names in theirs
    return list, kinds if of is _class_of or _VARIED.isdisjoint(kinds) else frozenset(_joined(set(map(of, value))))


def _joined(types: set[object]) -> Iterable[object]:
    """The types of elements, those of decimals as the one that holds them all: prices have many."""
    decimals = [kind for kind in types if isinstance(kind, tuple)]
    _, wholes, scales = zip(*decimals, strict=True) if decimals else ((), (), ())
    return (*types.difference(decimals), *([(_DECIMAL, max(wholes), max(scales))] if decimals else []))


def _integer(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return "INTEGER"
    if -(2**63) <= value < 2**63:
        return "BIGINT"
    if 0 < value < 2**64:
        return "UBIGINT"
    return "HUGEINT" if value < 2**127 else "UHUGEINT"


def _decimal(value: Decimal) -> object:
    """A DECIMAL by its digits before and behind the point; a number that has too many is a DOUBLE."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return Decimal  # NaN or infinite
    scale = max(-exponent, 0)
    width = len(digits) + max(exponent, 0)
    if width < scale:
        width = scale + 1
    return (_DECIMAL, width - scale, scale) if width <= _DIGITS_MAX else float
