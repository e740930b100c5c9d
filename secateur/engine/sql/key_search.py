"""Searches in the sorted partitions of a scan by primary key, as data of a plan.

Every bound on the key goes through :mod:`secateur.partitioning.pruning.key_bounds`. Serving statements have one key, a
prefix of it, or a span of values after a prefix (one device, one day), with values that are canonical keys: for them
the search consists of just these values.

The member that holds a partition does not need the partition's own range for this. Its first and last row are the
tightest bounds there are, and a binary search that meets neither ends at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from secateur.partitioning.pruning.key_bounds import KeyBounds
from secateur.partitioning.pruning.key_range import IndexSlice, KeyBoundary, KeyPrefix, KeyRange, KeyRanges, KeySlice
from secateur.partitioning.pruning.operand import Operand, resolve_operand
from secateur.partitioning.types.column_type import SqlType, TypeKind

__all__ = ["DirectSearch", "IndexSearch", "KeyEnd", "KeyOperand", "KeySearch"]

_OWN_TYPES: Final[dict[TypeKind, type]] = {
    TypeKind.VARCHAR: str,
    TypeKind.BLOB: bytes,
    TypeKind.BOOLEAN: bool,
    TypeKind.DATE: date,
    TypeKind.TIMESTAMP: datetime,
    TypeKind.UUID: UUID,
}


class KeyOperand(msgspec.Struct, frozen=True, array_like=True):
    """The operand that a primary-key column is compared with.

    Attributes:
        operand: The constant or parameter.
        type: The type of the column.
    """

    operand: Operand
    type: SqlType

    def holds(self, value: Any) -> bool:
        """Whether a value is canonical for the column, for the types of most keys; False requires a conversion."""
        if type(value) is int and self.type.is_integer:
            low, high = self.type.integer_range
            return low <= value <= high
        return type(value) is _OWN_TYPES.get(self.type.kind) and (type(value) is not datetime or value.tzinfo is None)


class KeyEnd(msgspec.Struct, frozen=True, array_like=True):
    """One end of a span of values.

    Attributes:
        key: The value.
        closed: Whether it belongs to the span.
    """

    key: KeyOperand
    closed: bool


class DirectSearch(msgspec.Struct, frozen=True, array_like=True):
    """Equalities on leading primary-key columns, and perhaps a span of the next column.

    Attributes:
        prefix: The values of the leading columns.
        lower: The lower end of the next column, or None.
        upper: The upper end of the next column, or None.
        decides: Whether WHERE has no further condition, so that the rows found need no filter.
    """

    prefix: tuple[KeyOperand, ...]
    lower: KeyEnd | None = None
    upper: KeyEnd | None = None
    decides: bool = False

    def holds(self, params: Sequence[Any]) -> bool:
        """Whether all values are canonical keys; otherwise :meth:`bind` cannot compare them."""
        # A loop, not all(): this runs for each serving statement.
        for key in self.prefix:
            if not key.holds(resolve_operand(key.operand, params, key.type)):
                return False
        lower, upper = self.lower, self.upper
        return (lower is None or lower.key.holds(resolve_operand(lower.key.operand, params, lower.key.type))) and (
            upper is None or upper.key.holds(resolve_operand(upper.key.operand, params, upper.key.type))
        )

    def bind(self, params: Sequence[Any]) -> KeySlice:
        """Return the part of each partition that holds the rows, for values of which :meth:`holds` is true."""
        prefix = tuple([resolve_operand(key.operand, params, key.type) for key in self.prefix])
        if self.lower is None and self.upper is None:
            return KeyPrefix(prefix)
        lower, upper = KeyBoundary(prefix, after=False), KeyBoundary(prefix, after=True)
        if self.lower is not None:
            lower = KeyBoundary(
                (*prefix, resolve_operand(self.lower.key.operand, params, self.lower.key.type)),
                after=not self.lower.closed,
            )
        if self.upper is not None:
            upper = KeyBoundary(
                (*prefix, resolve_operand(self.upper.key.operand, params, self.upper.key.type)), after=self.upper.closed
            )
        span = KeyRange(lower, upper)
        return KeyRanges(() if span.is_empty else (span,))


class KeySearch(msgspec.Struct, frozen=True, array_like=True):
    """The bounds that a statement sets on the primary key of one scan.

    Attributes:
        bounds: All of them; None if there are none.
        direct: The same in the form of serving statements, when it has that form.
        index: The index to search if there are no bounds on the primary key; None for none.
    """

    bounds: KeyBounds | None = None
    direct: DirectSearch | None = None
    index: IndexSearch | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the search does not depend on parameters."""
        if self.bounds is None:
            return self.index is None or self.index.search.is_constant
        return self.bounds.is_constant

    @property
    def decides(self) -> bool:
        """Whether for some values the rows found need no filter."""
        return self.direct is not None and self.direct.decides

    def decides_for(self, params: Sequence[Any]) -> bool:
        """Whether the rows that a search finds are exactly those of WHERE."""
        return self.direct is not None and self.direct.decides and self.direct.holds(params)

    def bind(self, params: Sequence[Any]) -> KeySlice | None:
        """The part of each partition that can hold rows of the answer; None for all of it.

        Args:
            params: The statement's parameters in order.

        Raises:
            IndexError: There are fewer parameters than the search uses.

        Cost: 1 to 3 microseconds for a direct search; else that of ``KeyBounds.bind``.
        """
        if self.direct is not None and self.direct.holds(params):
            return self.direct.bind(params)
        if self.bounds is None:
            return None if self.index is None else self.index.bind(params)
        found = self.bounds.bind(params)
        match found.ranges:
            case (KeyRange(KeyBoundary(low, False), KeyBoundary(high, True)),) if low == high:
                return KeyPrefix(low) if low else None
            case _:
                return found


class IndexSearch(msgspec.Struct, frozen=True, array_like=True):
    """The bounds that a statement sets on the columns of a secondary index.

    Attributes:
        name: The index.
        columns: Those of its columns that are searched.
        search: The bounds on them, as on a key. It never decides: NULLs and long lists may add rows.
    """

    name: str
    columns: tuple[str, ...]
    search: KeySearch

    def bind(self, params: Sequence[Any]) -> IndexSlice | None:
        """The part of the index that can have rows of the answer; None for all of it.

        Raises:
            IndexError: There are fewer parameters than the search uses.
        """
        part = self.search.bind(params)
        return IndexSlice(self.name, self.columns, part) if isinstance(part, KeyPrefix | KeyRanges) else None
