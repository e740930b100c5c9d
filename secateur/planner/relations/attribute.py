"""Attributes: the columns of relations, and the column nodes of the statement that refer to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from sqlglot import exp

from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind
from secateur.planner.text.trees import children_of

_OCCURRENCE: Final = "occurrence"
_numbers = count()

# Equal values of these types are identical. 0.0 and -0.0 are equal but not identical: a cast to text differs.
_INEXACT: Final = NESTED | {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.INTERVAL}


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of one relation.

    Attributes:
        owner: The number of the relation that makes it; each reference to a table is a relation of its own.
        position: Among the columns of that relation, from 0.
        name: The user's name for it.
        type: None for a computed column.
        nullable: Whether it may be NULL where it is made; an outer join above may make any column NULL.
    """

    owner: int
    position: int
    name: str
    type: SqlType | None
    nullable: bool = True

    def __hash__(self) -> int:
        return hash((self.owner, self.position))


def compares_alike(left: Attribute, right: Attribute) -> bool:
    """Whether equal attributes are interchangeable in every comparison.

    They are if they have one type, or are integers, which DuckDB widens without loss.
    """
    if left.type is None or right.type is None or not is_exact(left):
        return False
    return left.type == right.type or (left.type.is_integer and right.type.is_integer)


def is_exact(attribute: Attribute) -> bool:
    """Whether equal values of an attribute are identical."""
    return attribute.type is not None and attribute.type.kind not in _INEXACT


def occurrence(column: exp.Column) -> int:
    """The number of a column node. Copies of the node keep it: they mean the same."""
    number = column.meta.get(_OCCURRENCE)
    if number is None:
        number = column.meta[_OCCURRENCE] = next(_numbers)
    return int(number)


def renumber(column: exp.Column) -> int:
    """Give a copied column node a number of its own, so that it may refer to something else than the original."""
    column.meta[_OCCURRENCE] = next(_numbers)
    return occurrence(column)


def columns_in(node: exp.Expr) -> Iterator[exp.Column]:
    """The column nodes of an expression outside of its subqueries and windows.

    Without recursion, as lists and chains may be long.
    """
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Column):
            if isinstance(item.this, exp.Identifier):
                yield item
        elif not isinstance(item, (exp.Literal, exp.Query, exp.Window)):
            pending.extend(children_of(item))
