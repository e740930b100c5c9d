"""A stage: the part of a SELECT between two exchanges, one kernel call at each member that runs it.

A statement over several members is a small DAG of stages. Each reads partitions of the tables where they are, and the
rows that earlier stages sent; its fragment answers over all of it at once, and the exchange determines which members
get the answer.

Source: the exchange operator of Volcano (Graefe, 1994); fragments between exchanges as in Apache Ignite's SQL engine.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from secateur.engine.kernels.fragment import Fragment
from secateur.engine.processors.order_and_limit import RowLimit, SortKey


class InputAlias(NamedTuple):
    """A name by which a fragment calls the rows of an input, such as that of the scan whose rows these are.

    The source is the input, as :func:`~secateur.engine.sql.stage.stage_relation` names it.
    """

    relation: str
    source: str


class ExchangeKind(Enum):
    """The way in which the rows of a stage reach the members that run its consumers.

    A consumer at the coordinator gets all rows, whatever the exchange.
    """

    GATHER = "gather"
    """All rows to the coordinator; there is no consumer elsewhere."""
    BROADCAST = "broadcast"
    """All rows to every member that runs the consumer."""
    ROUTE = "route"
    """Each row to the owner of the partition that it belongs to by the partition function of a table that the consumer
    scans: rows meet the table's data.
    """
    SHUFFLE = "shuffle"
    """Each row to the member that the hash of some columns names: rows with equal keys meet.

    Keys that are to meet are of one type.
    """


def stage_relation(index: int) -> str:
    """The name by which the fragments of later stages call the output of a stage."""
    return f"x{index}"


class QueryStage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stage of a SELECT.

    Attributes:
        name: For EXPLAIN and metrics, such as ``scan:o`` or ``final``.
        fragment: One kernel call over the relations of its scans (``ScanPlan.relation``) and of its inputs
            (:func:`stage_relation`, or their ``aliases``).
        scans: Indices into the plan's scans. Each member reads those of the required partitions that it owns, or its
            own copy of a replicated table.
        inputs: Indices of earlier stages.
        at_coordinator: Whether it runs once, at the coordinator, where it can read replicated tables only; if it is not
            the last stage and all its rows come from one partition, at the owner of that. Otherwise it
            runs at each member that owns a required partition of one of its scans or, when it scans no partitioned
            table, at every participant.
        exchange: How its output is sent; without meaning for the last stage, whose output is the answer.
        columns: The key of ``ROUTE`` or ``SHUFFLE``, columns of its output. For ``ROUTE`` they correspond to the
            partitioning key of the table, in order, and have its types; a NULL of a ``TRY_CAST`` replaces a value
            that none of them can hold.
        route: For ``ROUTE``: the index of a scan that every consumer has, whose partitions the rows follow. Else
            None.
        order: For ``GATHER``: the order of its rows at each member, columns of its output that DuckDB orders;
            they are merged before its consumer, the last stage, gets them. Empty: they have no order.
        limit: For the last stage: how many of its rows, in their order, are the answer; the statement ends
            when they are there. None for all.
        keeps_unmatched: For ``ROUTE``: whether a row for which the consumer reads no partition is sent to any member
            that runs the consumer, as an outer join needs it. Otherwise it is dropped.
        aliases: Other names of its inputs' rows in the fragment.
        estimate: For a stage whose rows are those of one scan that pass its predicates: about how many all members
            together were expected to find. None where nothing was reckoned.
    """

    name: str
    fragment: Fragment
    scans: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    at_coordinator: bool = False
    exchange: ExchangeKind = ExchangeKind.GATHER
    columns: tuple[str, ...] = ()
    route: int | None = None
    keeps_unmatched: bool = False
    order: tuple[SortKey, ...] = ()
    limit: RowLimit | None = None
    aliases: tuple[InputAlias, ...] = ()
    estimate: int | None = None

    @property
    def relations(self) -> list[str]:
        """The names that its inputs have in its fragment."""
        aliased = {alias.source for alias in self.aliases}
        return [name for name in map(stage_relation, self.inputs) if name not in aliased] + [
            alias.relation for alias in self.aliases
        ]

    @property
    def spreads(self) -> bool:
        """Whether each row reaches exactly one of the members that run a consumer, whatever the consumer scans."""
        return self.exchange is ExchangeKind.SHUFFLE or (self.exchange is ExchangeKind.ROUTE and self.keeps_unmatched)
