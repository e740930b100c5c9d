"""Searches in the sorted partitions of a scan by primary key, as data of a plan.

Every bound on the key goes through :mod:`secateur.partitioning.pruning.key_range`. Serving statements have one key, a
prefix of it, or a span of values after a prefix (one device, one day), with values that are canonical keys: for them
the search consists of just these values.

The member that holds a partition does not need the partition's own range for this. Its first and last row are the
tightest bounds there are, and a binary search that meets neither ends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from secateur.partitioning.pruning.key_range import (
    IndexSlice,
    KeyBoundary,
    KeyBounds,
    KeyPrefix,
    KeyRange,
    KeyRanges,
    KeySlice,
)
from secateur.partitioning.pruning.operand import Operand, Parameter, resolve_operand
from secateur.partitioning.types.column_type import SqlType, TypeKind


class KeyOperand(msgspec.Struct, frozen=True, array_like=True):
    """The constant or parameter that a primary-key column is compared with, and the type of the column."""

    operand: Operand
    type: SqlType

    def bind(self, params: Sequence[Any]) -> Any:
        """The value, if it is canonical for the column, for the types of most keys; None if it has to be converted.

        A float never is: -0.0 and 0.0 are one key, and so are all NaNs, which in Python differ even from themselves.
        """
        value, type_ = resolve_operand(self.operand, params, self.type), self.type
        if type(value) is int:
            return value if type_.has_integer(value) else None
        if type(value) is datetime:
            return value if type_.kind is TypeKind.TIMESTAMP and value.tzinfo is None else None
        return value if type(value) is type_.value_class and not type_.is_float else None


class KeyEnd(msgspec.Struct, frozen=True, array_like=True):
    """One end of a span of values, which belongs to it where it is ``closed``."""

    key: KeyOperand
    closed: bool


class DirectSearch(msgspec.Struct, frozen=True, array_like=True):
    """Equalities on leading primary-key columns, and perhaps a span or a list of values of the next column.

    Attributes:
        prefix: The values of the leading columns.
        lower: The lower end of the next column, or None.
        upper: The upper end of the next column, or None.
        decides: Whether WHERE has no further condition, so that exactly the rows with these keys pass it.
        choices: The values of an IN list of the next column; nothing where there is none.
    """

    prefix: tuple[KeyOperand, ...]
    lower: KeyEnd | None = None
    upper: KeyEnd | None = None
    decides: bool = False
    choices: tuple[KeyOperand, ...] = ()

    @property
    def is_span(self) -> bool:
        """Whether it finds a span of values, so that its rows have no few prefixes of keys."""
        return self.lower is not None or self.upper is not None

    def prefixes(self, params: Sequence[Any]) -> Sequence[tuple[Any, ...]] | None:
        """The values with which the keys of the rows begin, if they are few.

        Returns:
            Leading key values, none of them twice; None if a value is not a canonical key, or if the search is a span.
        """
        if self.is_span:
            return None
        prefix = tuple([key.bind(params) for key in self.prefix])
        if None in prefix:
            return None
        if not self.choices:
            return (prefix,)
        chosen = dict.fromkeys([key.bind(params) for key in self.choices])
        return None if None in chosen else [(*prefix, value) for value in chosen]

    def compiled(self) -> Callable[[Sequence[Any]], Sequence[tuple[Any, ...]] | None]:
        """:meth:`prefixes` as a function, which takes a third of its time where all values are parameters."""
        if self.is_span:
            return self.prefixes
        prefix, choices = _parameters(self.prefix), _parameters(self.choices)
        if prefix is None or choices is None:
            return self.prefixes

        def prefixes(params: Sequence[Any]) -> Sequence[tuple[Any, ...]] | None:
            values = _own_values(prefix, params)
            if values is None:
                return self.prefixes(params)
            if not choices:
                return (tuple(values),)
            chosen = _own_values(choices, params)
            if chosen is None:
                return self.prefixes(params)
            return [(*values, value) for value in dict.fromkeys(chosen)]

        return prefixes

    def bind(self, params: Sequence[Any]) -> KeySlice | None:
        """The part of each partition that holds the rows; None if a value is not a canonical key.

        Also None for a list of values: the bounds of a :class:`KeySearch` put them in order.
        """
        if self.choices:
            return None
        prefix = tuple([key.bind(params) for key in self.prefix])
        if None in prefix:
            return None
        if not self.is_span:
            return KeyPrefix(prefix)
        lower, upper = KeyBoundary(prefix, after=False), KeyBoundary(prefix, after=True)
        if self.lower is not None:
            value = self.lower.key.bind(params)
            if value is None:
                return None
            lower = KeyBoundary((*prefix, value), after=not self.lower.closed)
        if self.upper is not None:
            value = self.upper.key.bind(params)
            if value is None:
                return None
            upper = KeyBoundary((*prefix, value), after=self.upper.closed)
        span = KeyRange(lower, upper)
        return KeyRanges(() if span.is_empty else (span,))


def _parameters(keys: Sequence[KeyOperand]) -> list[tuple[int, type, Any, Any]] | None:
    """The index of each parameter, the Python type of values that are canonical, and the bounds of integers.

    None if a key is another operand, or if values of its type are not canonical as they come.
    """
    found: list[tuple[int, type, Any, Any]] = []
    for key in keys:
        own = key.type.value_class
        if not isinstance(key.operand, Parameter) or own is None or own is float:
            return None
        found.append((key.operand.index, own, *(key.type.integer_range if own is int else (None, None))))
    return found


def _own_values(keys: Sequence[tuple[int, type, Any, Any]], params: Sequence[Any]) -> list[Any] | None:
    """The values of some parameters; None if one of them may have to be converted."""
    values = []
    for index, own, least, greatest in keys:
        value = params[index]
        if type(value) is not own or (least is not None and not least <= value <= greatest):
            return None
        values.append(value)
    return values


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
        """Whether for some values the rows that :meth:`search` finds need no filter."""
        return self.direct is not None and self.direct.decides and not self.direct.choices

    def bind(self, params: Sequence[Any]) -> KeySlice | None:
        """The part of each partition that can hold rows of the answer; None for all of it.

        Raises:
            IndexError: There are fewer parameters than the search uses.

        Cost: 1 to 3 microseconds for a direct search; else that of ``KeyBounds.bind``.
        """
        return self.search(params)[0]

    def search(self, params: Sequence[Any]) -> tuple[KeySlice | None, bool]:
        """The result of :meth:`bind`, and whether the rows that it finds are exactly those of WHERE."""
        direct = self.direct
        if direct is not None:
            part = direct.bind(params)
            if part is not None:
                return part, direct.decides
        if self.bounds is None:
            return None if self.index is None else self.index.bind(params), False
        found = self.bounds.bind(params)
        match found.ranges:
            case (KeyRange(KeyBoundary(low, False), KeyBoundary(high, True)),) if low == high:
                return KeyPrefix(low) if low else None, False
            case _:
                return found, False


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
