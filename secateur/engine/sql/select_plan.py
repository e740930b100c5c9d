"""The plan of a SELECT, as data: the planner builds it, members execute it, and msgpack carries it.

A plan holds the statement twice, so that the execution mode can be chosen when the parameters are known: whole
(``local``, for one member that has every required partition), and divided into ``stages`` that run where the partitions
are. The SQL in it is only the text inside the fragments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from typing import Any, Final, assert_never

import pyarrow as pa

from secateur.engine.exchange.key_routing import can_route
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.key_search import KeySearch
from secateur.engine.sql.stage import ExchangeKind, QueryStage
from secateur.errors import InternalError, ProtocolError
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.protocol.codec import typed_parts
from secateur.protocol.values import pack, plain_parts

__all__ = ["ScanPlan", "SelectPlan", "Strategy", "check_stages"]

_ID_BYTES: Final = 12


class Strategy(Enum):
    """How a statement runs when its partitions are on several members."""

    TWO_STAGE = "two_stage"
    """Each owner aggregates, sorts and limits its own rows; the coordinator combines."""
    PLACED = "placed"
    """Joins, groups and subqueries are computed where their rows are, as far as they are on one member; the rest moves
    between stages.
    """
    GATHER = "gather"
    """Each owner sends the rows and columns that the statement needs; the coordinator runs the whole statement."""


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """One reference to a table in a statement.

    Attributes:
        relation: The name by which ``SelectPlan.local`` calls it, such as ``s0``.
        table_id: The table's id, never reused.
        table: The table's name.
        alias: The name by which the user's statement calls it.
        columns: The columns that the statement needs, in table order; at least one, so that rows can be counted.
        tree: The partitions to read, open in the parameters.
        group: The affinity group of the table, by which the topology knows its owners.
        replicated: Whether every member has a full copy.
        keys: The conditions on the primary key; rows inside a partition are sorted by it, so that a search replaces
            the scan.
        reason: Why the scan cannot be pruned, in words a user can act on, or None when it can.
        table_version: The version of the table for which the tree was made: its partitions are those that the table had
            then.
        system: The name of a system table, whose rows are fetched from the controller when the statement runs; None for
            a table of the user.
        rows: The rows of a system table, in a plan that is about to run; None in any other, and on the wire.
    """

    relation: str
    table_id: int
    table: str
    alias: str
    columns: tuple[str, ...]
    tree: PartitionTree
    group: str
    replicated: bool
    keys: KeySearch = field(default_factory=KeySearch)
    reason: str | None = None
    table_version: int = 1
    system: str | None = None
    rows: pa.Table | None = field(default=None, compare=False, repr=False)

    def to_wire(self) -> dict[str, Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return {
            "relation": self.relation,
            "table_id": self.table_id,
            "table": self.table,
            "alias": self.alias,
            "columns": list(self.columns),
            "tree": plain_parts(self.tree, has_sets=True),
            "group": self.group,
            "replicated": self.replicated,
            "table_version": self.table_version,
            "keys": self.keys.to_wire(),
            "reason": self.reason,
            "system": self.system,
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> ScanPlan:
        return cls(
            relation=data["relation"],
            table_id=data["table_id"],
            table=data["table"],
            alias=data["alias"],
            columns=tuple(data["columns"]),
            tree=typed_parts(data["tree"], PartitionTree),
            group=data["group"],
            replicated=data["replicated"],
            table_version=data["table_version"],
            keys=KeySearch.from_wire(data["keys"]),
            reason=data["reason"],
            system=data["system"],
        )


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """A SELECT, planned.

    Attributes:
        plan_id: A digest of everything else that travels, made by :meth:`named`. Equal ids therefore mean equal plans:
            members keep plans by id, and a process that receives a plan from another one can check that it is the
            requested one.
        scans: Every reference to a table, in the order of the relations ``s0``, ``s1``, ...
        local: The whole statement over the relations of the scans.
        stages: The statement taken apart, each stage after those that feed it; the last runs at the coordinator, and
            its output is the answer.
        gathered: For ``PLACED``, and for a statement that is gathered because it is small, the stages that gather what
            the conditions of each scan leave. Other stages may evaluate what the whole statement evaluates behind a
            filter, so an error in the data has to be one of these stages as well.
        strategy: How the statement was split.
        gather_reason: Why the strategy is ``GATHER``; for ``PLACED`` what the coordinator gets as it is, and why. None
            where there is nothing.
        columns: Name and SQL type text of each result column.
        parameter_count: How many parameters the statement has.
        parameter_names: Their names in order of index when they are named (``$name``), else empty.
        empty: The answer as an Arrow IPC stream when no partition can match, or None when it depends on parameters:
            then ``local`` over empty relations says it.
        deterministic: Whether equal data and parameters give equal answers (``random()`` and ``now()`` do not).
        catalog_version: The catalog version for which the plan was made.
        is_sized: Whether it would have other stages if its tables were larger or smaller, though it reads one.
        views: The ids of the views of which it was made; none of them may have been replaced or dropped when it runs.
        system_tables: The names of the system tables that it reads.
        reads_clock: Whether the stages have the time at which the statement starts as one more parameter, behind the
            others: one time for all members.
        undivided: The stages that run the user's own text over all rows of its tables, for ``SET pruning = verify``;
            nothing where that is not asked for.
        origin: A digest of the text and the settings that the plan was made of: two statements with the same plan have
            ids of their own, by which their texts are found.
        searched: ``local`` without its WHERE in the arrow kernel, for when a search has applied it; None when there is
            no such case.
    """

    plan_id: str
    scans: tuple[ScanPlan, ...]
    local: Fragment
    stages: tuple[QueryStage, ...]
    strategy: Strategy
    gather_reason: str | None
    columns: tuple[tuple[str, str], ...]
    parameter_count: int
    parameter_names: tuple[str, ...]
    empty: bytes | None
    deterministic: bool
    catalog_version: int
    gathered: tuple[QueryStage, ...] = ()
    views: tuple[int, ...] = ()
    reads_clock: bool = False
    is_sized: bool = field(default=False, compare=False)
    undivided: tuple[QueryStage, ...] = ()
    origin: str = ""
    system_tables: tuple[str, ...] = field(default=(), init=False, compare=False, repr=False)
    searched: Fragment | None = field(default=None, init=False, compare=False, repr=False)

    def named(self) -> SelectPlan:
        """The plan under its own id. Cost: that of encoding it, some 50 microseconds for a statement over one table."""
        return replace(self, plan_id=_digest(self.to_wire()))

    def pinned(self, rows: Mapping[str, pa.Table]) -> SelectPlan:
        """The plan over these rows of the system tables that it reads, for one execution."""
        return replace(
            self,
            scans=tuple(scan if scan.system is None else replace(scan, rows=rows[scan.system]) for scan in self.scans),
        )

    def as_written(self) -> SelectPlan:
        """Return the plan that runs the user's own text in DuckDB's kernel; itself if it has no stages for that."""
        return (
            replace(self, local=replace(self.local, arrow=None), stages=self.undivided, gathered=(), reads_clock=False)
            if self.undivided
            else self
        )

    def stage_params(self, params: Sequence[Any]) -> Sequence[Any]:
        """Return the parameters of the stages for those of the statement, which starts now."""
        return [*params, datetime.now(UTC)] if self.reads_clock else params

    @property
    def is_estimated(self) -> bool:
        """Whether the plan depends on estimates, which choose between ways to join tables and to sort."""
        return self.is_sized or len(self.scans) > 1

    def __post_init__(self) -> None:
        check_stages(self.scans, self.stages)
        object.__setattr__(
            self, "system_tables", tuple(dict.fromkeys(scan.system for scan in self.scans if scan.system is not None))
        )
        arrow = self.local.arrow
        if arrow is not None and len(self.scans) == 1 and self.scans[0].keys.decides:
            object.__setattr__(self, "searched", replace(self.local, arrow=replace(arrow, where=None)))

    def to_wire(self) -> dict[str, Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return {
            **self.to_client(),
            "scans": [scan.to_wire() for scan in self.scans],
            "local": self.local.to_wire(),
            "stages": [stage.to_wire() for stage in self.stages],
            "gathered": [stage.to_wire() for stage in self.gathered],
            "views": list(self.views),
            "reads_clock": self.reads_clock,
            "origin": self.origin,
            **({"undivided": [stage.to_wire() for stage in self.undivided]} if self.undivided else {}),
        }

    def to_client(self) -> dict[str, Any]:
        """The part that a thin client needs to route: trees, columns, parameters, the empty answer; no fragment."""
        return {
            "plan_id": self.plan_id,
            "scans": [
                {
                    "table": scan.table,
                    "table_id": scan.table_id,
                    "table_version": scan.table_version,
                    "alias": scan.alias,
                    "tree": scan.tree,
                    "group": scan.group,
                    "replicated": scan.replicated,
                    "reason": scan.reason,
                }
                for scan in self.scans
            ],
            "strategy": self.strategy.value,
            "gather_reason": self.gather_reason,
            "columns": [list(column) for column in self.columns],
            "parameter_count": self.parameter_count,
            "parameter_names": list(self.parameter_names),
            "empty": self.empty,
            "deterministic": self.deterministic,
            "schema_version": self.catalog_version,
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> SelectPlan:
        """Read a plan of :meth:`to_wire`, from a sender that need not be trusted.

        Raises:
            ProtocolError: It is not the plan that its id names.
        """
        if data["plan_id"] != _digest(data):
            raise ProtocolError(
                f"what was received as plan {data['plan_id']} is not that plan: the process that sent it is of another"
                " version, or damaged"
            )
        return cls(
            plan_id=data["plan_id"],
            scans=tuple(ScanPlan.from_wire(scan) for scan in data["scans"]),
            local=Fragment.from_wire(data["local"]),
            stages=tuple(QueryStage.from_wire(stage) for stage in data["stages"]),
            strategy=Strategy(data["strategy"]),
            gather_reason=data["gather_reason"],
            columns=tuple((name, text) for name, text in data["columns"]),
            parameter_count=data["parameter_count"],
            parameter_names=tuple(data["parameter_names"]),
            empty=data["empty"],
            deterministic=data["deterministic"],
            catalog_version=data["schema_version"],
            gathered=tuple(QueryStage.from_wire(stage) for stage in data["gathered"]),
            views=tuple(data["views"]),
            reads_clock=data["reads_clock"],
            undivided=tuple(QueryStage.from_wire(stage) for stage in data.get("undivided", ())),
            origin=data["origin"],
        )


def _digest(data: Mapping[str, Any]) -> str:
    """The id of the plan that ``data`` says, whatever id it gives."""
    return blake2b(
        pack({name: value for name, value in data.items() if name != "plan_id"}), digest_size=_ID_BYTES
    ).hexdigest()


def check_stages(scans: Sequence[ScanPlan], stages: Sequence[QueryStage]) -> None:
    """Check that each row of a stage has a consumer and each relation a producer.

    Raises:
        InternalError: They do not; says which.
    """
    if not stages or not stages[-1].at_coordinator:
        raise InternalError("the last stage of a plan runs at the coordinator")
    for index, stage in enumerate(stages):
        consumers = [later for later in stages if index in later.inputs]
        filled = {*(scans[scan].relation for scan in stage.scans), *stage.relations}
        partitioned = [scan for scan in stage.scans if not scans[scan].replicated]
        problem = None
        if any(number >= index for number in stage.inputs):
            problem = "has an input that is not an earlier stage"
        elif not filled.issuperset(stage.fragment.relations):
            problem = f"reads {sorted(set(stage.fragment.relations) - filled)}, which neither a scan nor an input fills"
        elif stage.at_coordinator and partitioned:
            problem = "scans a partitioned table at the coordinator"
        elif (
            not stage.at_coordinator
            and not partitioned
            and not any(stages[number].exchange is ExchangeKind.SHUFFLE for number in stage.inputs)
        ):
            problem = "would give the same rows at every member: it has neither a partitioned scan nor a shuffled input"
        elif stage.limit is not None and (index < len(stages) - 1 or not stage.fragment.is_row_by_row):
            problem = "leaves out rows, but is not the last stage or does not pass them on one by one"
        elif index < len(stages) - 1:
            problem = _problem_of_exchange(stage, consumers, scans)
        if problem is not None:
            raise InternalError(f"stage {index} ({stage.name}) {problem}")


def _problem_of_order(stage: QueryStage, consumers: Sequence[QueryStage]) -> str | None:
    if not {key.column for key in stage.order} <= set(stage.fragment.column_names):
        return f"comes in order of {[key.column for key in stage.order]}, not columns of it"
    if (
        stage.at_coordinator
        or len(consumers) > 1
        or len(consumers[0].inputs) > 1
        or not consumers[0].fragment.is_row_by_row
    ):
        return "comes in order from each member, but is not passed on row by row at the coordinator"
    return None


def _problem_of_exchange(stage: QueryStage, consumers: Sequence[QueryStage], scans: Sequence[ScanPlan]) -> str | None:
    elsewhere = [consumer for consumer in consumers if not consumer.at_coordinator]
    if not consumers:
        return "has no consumer"
    match stage.exchange:
        case ExchangeKind.GATHER if elsewhere:
            return f"is gathered, but {elsewhere[0].name} does not run at the coordinator"
        case ExchangeKind.GATHER:
            return None if not stage.order else _problem_of_order(stage, consumers)
        case ExchangeKind.BROADCAST:
            return None
        case ExchangeKind.SHUFFLE:
            types = {field.name: field.type for field in stage.fragment.schema}
            if not stage.columns or not types.keys() >= set(stage.columns):
                return f"is shuffled by {stage.columns}, not columns of it"
            unfit = [f"{column} of type {types[column]}" for column in stage.columns if not can_route(types[column])]
            return f"is shuffled by {', '.join(unfit)}, which cannot be a key" if unfit else None
        case ExchangeKind.ROUTE:
            if stage.route is None or any(stage.route not in consumer.scans for consumer in elsewhere):
                return "follows the partitions of a scan that a consumer does not have"
            scheme = scans[stage.route].tree.scheme
            wanted = [scheme.type_of(column).arrow for column in scheme.columns]
            given = {field.name: field.type for field in stage.fragment.schema}
            if [given.get(column) for column in stage.columns] != wanted:
                return (
                    f"is routed by {stage.columns}, which do not stand for {scheme.columns} of the types"
                    f" {', '.join(map(str, wanted))}"
                )
            return None
        case _:
            assert_never(stage.exchange)
