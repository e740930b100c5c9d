"""The expressions of parameters in partition trees and key searches, and the places of their values.

A plan numbers its expressions once. Whoever executes it, or routes it, has DuckDB evaluate them
(:mod:`secateur.expression_values`) and appends the values to the parameters, where the trees find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast, get_type_hints

import msgspec
from msgspec.structs import replace

from secateur.partitioning.pruning.domain import Domain
from secateur.partitioning.pruning.operand import Evaluated

S = TypeVar("S")

_PLAIN: Final = frozenset({int, float, bool, str, bytes, type(None)})


def expressions_in(parts: Iterable[Any]) -> tuple[Evaluated, ...]:
    """The distinct expressions of some trees, searches or parts of them, in the order of their places."""
    found = {expression: None for part in parts for expression in _found(part)}
    return tuple(sorted(found, key=lambda expression: expression.index))


def places(parts: Iterable[Any], first: int) -> dict[str, int]:
    """A place for each expression, by its SQL: ``first`` and up."""
    return {
        sql: first + position
        for position, sql in enumerate(dict.fromkeys(each.sql for part in parts for each in _found(part)))
    }


def numbered(part: S, places: Mapping[str, int]) -> S:
    """A tree, a search or a part of one whose expressions have these places."""
    made: Any = part
    if isinstance(part, Evaluated):
        made = replace(part, index=places[part.sql])
    elif isinstance(part, tuple):
        made = tuple(numbered(item, places) for item in part)
    elif isinstance(part, msgspec.Struct) and any(_found(part)):
        made = replace(part, **{name: numbered(getattr(part, name), places) for name in part.__struct_fields__})
    return cast("S", made)


def _found(part: Any) -> list[Evaluated]:
    found: list[Evaluated] = []
    pending = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, Evaluated):
            found.append(one)
        elif isinstance(one, tuple):
            pending.extend(reversed(one))
        elif isinstance(one, msgspec.Struct) and not isinstance(one, Domain):
            pending.extend([getattr(one, name) for name in _searched(type(one))])
    return found


@cache
def _searched(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a part, the last one first, but for those that are plain values."""
    named = get_type_hints(kind)
    return tuple(name for name in reversed(kind.__struct_fields__) if named[name] not in _PLAIN)
