"""The types of parameters as DuckDB's binder sees them: on which of them a plan depends, and values that have them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

_SPECIMEN_ELEMENTS: Final = 2


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
