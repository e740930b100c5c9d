"""The relations of a join for the arrow kernel, as pure data: left-deep, each joined to all before it.

Columns of a join are named by relation and column, ``s0.customer_id`` (:func:`source_column`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from secateur.engine.kernels.arrow.expression import Expression
from secateur.partitioning.types.column_type import SqlType, TypeKind

_SEARCHED: Final = frozenset(
    {
        TypeKind.TINYINT,
        TypeKind.SMALLINT,
        TypeKind.INTEGER,
        TypeKind.BIGINT,
        TypeKind.UTINYINT,
        TypeKind.USMALLINT,
        TypeKind.UINTEGER,
        TypeKind.UBIGINT,
        TypeKind.DATE,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMPTZ,
        TypeKind.VARCHAR,
    }
)


class SourceJoin(Enum):
    """The kind of join between a relation and those before it."""

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    """Rows with a match are kept, once; the columns of the relation are gone."""
    ANTI = "anti"
    """Rows without a match are kept."""


class ArrowSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """One relation of a join.

    Attributes:
        relation: Its name.
        where: Which of its rows take part, over its own columns; None for all.
        kind: How it is joined; of no meaning for the first.
        keys: The equalities of the join, at least one, but none for the first: an expression over the relations before,
            and one of the same type over this relation. A NULL matches nothing.
        condition: The condition that a pair of rows with equal keys has to satisfy in order to match; None for none.
        is_searched: Whether the second expression of the first key is a column in whose order the rows of each chunk
            are, without NULLs.
    """

    relation: str
    where: Expression | None = None
    kind: SourceJoin = SourceJoin.INNER
    keys: tuple[tuple[Expression, Expression], ...] = ()
    condition: Expression | None = None
    is_searched: bool = False


def source_column(relation: str, column: str) -> str:
    """The name of a column of a relation among those of a join."""
    return f"{relation}.{column}"


def can_search(type_: SqlType) -> bool:
    """Whether values of a type are found by binary search in a column that is in order of them."""
    return type_.kind in _SEARCHED
