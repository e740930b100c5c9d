"""Searching the sorted partitions of a scan by primary key, as data of a plan.

Serving statements name one key, or a prefix of it: for them a search is a few values and no more. Everything else that is said about the key goes through
:mod:`secateur.partitioning.key_bounds`. The member that holds a partition needs no knowledge of the partition's own range for this: its first and last row are
the tightest bounds there are, and a binary search that meets neither ends at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from secateur.partitioning.comparison import Comparison, compare
from secateur.partitioning.condition import Operand, Parameter, operand_from_wire, operand_to_wire, resolve_operand
from secateur.partitioning.key_bounds import KeyBounds
from secateur.partitioning.key_range import Cut, KeyPrefix, KeyRange, KeyRanges, KeySlice
from secateur.partitioning.types import SqlType, TypeKind, parse_type

__all__ = ["KeyOperand", "KeySearch"]

_NO_KEYS: Final = KeyRanges(())


@dataclass(frozen=True, slots=True)
class KeyOperand:
    """A primary-key column that every row of the scan's result must equal.

    Attributes:
        operand: The constant or parameter.
        type: The type of the column, into which the value is converted at binding.
    """

    operand: Operand
    type: SqlType

    def holds(self, value: Any) -> bool:
        """Whether a value is one of the column as it stands, for the types that most keys have; False says only that it has to be looked at closely."""
        if type(value) is int and self.type.is_integer:
            low, high = self.type.integer_range
            return low <= value <= high
        return type(value) is str and self.type.kind is TypeKind.VARCHAR


@dataclass(frozen=True, slots=True)
class KeySearch:
    """What a statement says about the primary key of one scan: equalities on a prefix, or bounds, or nothing.

    Attributes:
        prefix: The leading primary-key columns, when each of them is bound by one equality and nothing is said about the columns behind.
        bounds: What is said otherwise; then there is no prefix.
        decides: Whether WHERE says nothing beyond the equalities of ``prefix``, so that the search leaves nothing to filter.
    """

    prefix: tuple[KeyOperand, ...] = ()
    bounds: KeyBounds | None = None
    decides: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the search does not depend on parameters."""
        return not any(isinstance(key.operand, Parameter) for key in self.prefix) and (self.bounds is None or self.bounds.is_constant)

    def decides_for(self, params: Sequence[Any]) -> bool:
        """Whether the rows that a search finds are exactly those of WHERE: the values are keys as they stand."""
        return self.decides and all(key.holds(resolve_operand(key.operand, params)) for key in self.prefix)

    def bind(self, params: Sequence[Any]) -> KeySlice | None:
        """The part of each partition that can hold rows of the answer; None for all of it.

        A prefix ends at the first value whose comparison with the column is not exactly one key; the WHERE clause, which stays in the fragments, does the
        rest.

        Args:
            params: The statement's parameters in order.

        Raises:
            IndexError: There are fewer parameters than the search uses.
        """
        if self.bounds is not None:
            found = self.bounds.bind(params)
            match found.ranges:
                case (KeyRange(Cut(low, False), Cut(high, True)),) if low == high:
                    return KeyPrefix(low) if low else None
                case _:
                    return found
        values: list[Any] = []
        for key in self.prefix:
            value = resolve_operand(key.operand, params)
            if key.holds(value):
                values.append(value)
                continue
            domain = compare(Comparison.IN, [value], key.type)
            if domain is None:
                break
            if domain.is_nothing:
                return _NO_KEYS
            values.extend(domain.points)
        return KeyPrefix(tuple(values)) if values else None

    def to_wire(self) -> dict[str, Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return {
            "prefix": [[operand_to_wire(key.operand), str(key.type)] for key in self.prefix],
            "bounds": None if self.bounds is None else self.bounds.to_wire(),
            "decides": self.decides,
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> KeySearch:
        return cls(
            prefix=tuple(KeyOperand(operand_from_wire(operand), parse_type(text)) for operand, text in data["prefix"]),
            bounds=None if data["bounds"] is None else KeyBounds.from_wire(data["bounds"]),
            decides=data["decides"],
        )
