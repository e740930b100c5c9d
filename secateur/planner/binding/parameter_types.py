"""The types of parameters as DuckDB's binder sees them: on which of them a plan depends, and values that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum, auto
from typing import Any, Final

from secateur.planner.prune.overloads import CONTAINS
from secateur.planner.text.parser_cross_check import DuckDBParse

_SPECIMEN_ELEMENTS: Final = 2
_ROWS: Final = frozenset({"row", "list_value"})
_SCALAR: Final = frozenset({"CASE", "OPERATOR"})


def sample_value(value: Any) -> Any:
    """Return a value of the same type for DuckDB's binder, which would take a list apart element by element."""
    if type(value) is list and len(value) > _SPECIMEN_ELEMENTS:
        kinds = set(map(type, value))
        if kinds in ({str}, {date}):
            return value[:1]
        if kinds == {int}:
            return [min(value), max(value)]
    return value


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value that is not known yet.

    Attributes:
        type: Its SQL type.
    """

    type: str


@dataclass(frozen=True, slots=True)
class TypeUses:
    """The parameters of a text whose types may decide about the types of its columns, and those whose types do not.

    Attributes:
        needed: The indexes of the parameters whose types may decide about the types of its columns, or of its parts.
        unneeded: Those of the parameters of which no type decides about anything: wherever one stands, it is compared
            with something, or cast, before anything is made of it.
    """

    needed: frozenset[int] = frozenset()
    unneeded: frozenset[int] = frozenset()

    def __or__(self, other: TypeUses) -> TypeUses:
        needed = self.needed | other.needed
        return TypeUses(needed, (self.unneeded | other.unneeded) - needed)

    def typed(self, count: int) -> tuple[int, ...]:
        """The indexes of the parameters, of so many, on whose types a plan of the texts depends.

        A parameter that stands in none of the texts is among them: its type was looked at when the texts were made.
        """
        return tuple(index for index in range(count) if index not in self.unneeded)


NO_USES: Final = TypeUses()
"""The uses in a text that nobody has read: its plans depend on the types of all parameters."""


class _Place(Enum):
    """The use of a part of a tree."""

    FREE = auto()
    """Its type may become the type of something else."""
    COMPARED = auto()
    """It is a side of a comparison, or one of the values of a row or list there."""
    CAST = auto()
    """It is the value of a cast, or such a value is computed from it in each row."""


def type_uses_in(reading: DuckDBParse) -> TypeUses:
    """Find out on the types of which parameters the types in a query may depend.

    A parameter counts as compared only if it is itself an operand of the comparison: with ``k = $1 + 1`` the planner
    may do arithmetic of its own.
    """
    needed: set[int] = set()
    unneeded: set[int] = set()
    pending: list[tuple[Any, _Place]] = [(reading.tree, _Place.FREE)]
    while pending:
        item, place = pending.pop()
        if isinstance(item, list):
            pending.extend((part, place) for part in item)
        elif isinstance(item, dict):
            if item.get("class") == "PARAMETER":
                (needed if place is _Place.FREE else unneeded).add(int(item["identifier"]) - 1)
                continue
            inner = _inside(item, place, reading)
            pending.extend((part, inner) for part in item.values() if isinstance(part, (dict, list)))
    return TypeUses(frozenset(needed), frozenset(unneeded - needed))


def _inside(node: Mapping[str, Any], place: _Place, reading: DuckDBParse) -> _Place:
    """The use of the parts of a node."""
    match node:
        case {"class": "COMPARISON" | "BETWEEN"} | {"type": "LIMIT_MODIFIER"}:
            return _Place.COMPARED
        case {"class": "OPERATOR", "type": "COMPARE_IN" | "COMPARE_IN_LIST"}:
            return _Place.COMPARED
        case {"class": "CAST"}:
            return _Place.CAST
        case {"class": "FUNCTION", "function_name": called}:
            name = called.lower()
            if name in CONTAINS:
                return _Place.COMPARED
            is_passed_on = name in _ROWS if place is _Place.COMPARED else reading.is_scalar(name)
            return place if is_passed_on else _Place.FREE
        case {"class": kind} if kind not in _SCALAR or place is not _Place.CAST:
            return _Place.FREE
        case _:
            return place
