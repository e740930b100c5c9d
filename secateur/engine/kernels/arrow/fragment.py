"""A fragment for the arrow kernel: one pass over one relation, stage by stage, as pure data.

``WHERE -> GROUP BY and aggregates -> HAVING -> outputs -> DISTINCT -> ORDER BY -> OFFSET, LIMIT``. Without aggregation
the outputs read the relation's columns. With it, they read the group keys and then the aggregates, which are columns
named by their position: ``#0``, ``#1`` and so on (:func:`slot_name`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from secateur.engine.kernels.arrow.expression import Expression, from_wire, to_wire
from secateur.partitioning.types.column_type import SqlType, parse_type

__all__ = ["AggregateFunction", "ArrowAggregate", "ArrowFragment", "OrderTerm", "slot_name"]


class AggregateFunction(Enum):
    """All but COUNT_ROWS skip NULL; all but the counts are NULL for no value."""

    COUNT_ROWS = "count_rows"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class ArrowAggregate:
    """One aggregate.

    Attributes:
        function: The aggregate function.
        argument: Its argument; None for COUNT_ROWS alone.
        type: The type of its result.
    """

    function: AggregateFunction
    argument: Expression | None
    type: SqlType


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """One ORDER BY term over the same columns as the outputs.

    Under DISTINCT it is over the outputs as ``#0``, ``#1``.
    """

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class ArrowFragment:
    """A statement over one relation.

    Attributes:
        outputs: Name and expression of each result column.
        where: Rows for which it is true are read; None for all.
        keys: Group keys; empty with aggregates for one group of all rows (which exists even without rows); None without
            aggregation.
        aggregates: The aggregates of each group.
        having: Groups for which it is true are kept, over ``#0``, ``#1``.
        distinct: Whether equal result rows are merged.
        order: Sort keys, the first the most significant.
        limit: Most rows in the result: a constant or a parameter; None for all.
        offset: Rows left out at the start.
    """

    outputs: tuple[tuple[str, Expression], ...]
    where: Expression | None = None
    keys: tuple[Expression, ...] | None = None
    aggregates: tuple[ArrowAggregate, ...] = ()
    having: Expression | None = None
    distinct: bool = False
    order: tuple[OrderTerm, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    program: Any = field(default=None, init=False, compare=False, repr=False)
    """The closure that the kernel compiled from this value. It is stored here because a lookup by value would hash the
    whole tree in each call.
    """

    @property
    def is_row_by_row(self) -> bool:
        """Whether each row of the result comes from one row of the relation, in its order."""
        return self.keys is None and not self.distinct and not self.order and self.limit is None and self.offset is None

    def to_wire(self) -> dict[str, Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return {
            "outputs": [[name, to_wire(expression)] for name, expression in self.outputs],
            "where": _optional(self.where),
            "keys": None if self.keys is None else [to_wire(key) for key in self.keys],
            "aggregates": [[a.function.value, _optional(a.argument), str(a.type)] for a in self.aggregates],
            "having": _optional(self.having),
            "distinct": self.distinct,
            "order": [[to_wire(key.expression), key.descending, key.nulls_first] for key in self.order],
            "limit": _optional(self.limit),
            "offset": _optional(self.offset),
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> ArrowFragment:
        return cls(
            outputs=tuple((name, from_wire(expression)) for name, expression in data["outputs"]),
            where=_read(data["where"]),
            keys=None if data["keys"] is None else tuple(map(from_wire, data["keys"])),
            aggregates=tuple(
                ArrowAggregate(AggregateFunction(function), _read(argument), parse_type(kind))
                for function, argument, kind in data["aggregates"]
            ),
            having=_read(data["having"]),
            distinct=data["distinct"],
            order=tuple(
                OrderTerm(from_wire(expression), descending, nulls_first)
                for expression, descending, nulls_first in data["order"]
            ),
            limit=_read(data["limit"]),
            offset=_read(data["offset"]),
        )


def slot_name(position: int) -> str:
    """The name of the column at a position among group keys and aggregates, or among outputs."""
    return f"#{position}"


def _optional(expression: Expression | None) -> list[Any] | None:
    return None if expression is None else to_wire(expression)


def _read(data: Sequence[Any] | None) -> Expression | None:
    return None if data is None else from_wire(data)
