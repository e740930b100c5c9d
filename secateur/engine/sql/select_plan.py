"""The plan of a SELECT, as data: the planner builds it, members execute it, and msgpack carries it.

A plan holds the statement twice, so that the execution mode can be chosen when the parameters are known: whole
(``local``, for one member that has every required partition), and divided into ``stages`` that run where the partitions
are. The SQL in it is only the text inside the fragments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple, assert_never

import msgspec
import pyarrow as pa
from msgspec.structs import asdict, replace

from secateur.cached_properties import cached_property
from secateur.engine.exchange.key_routing import can_route
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.key_search import KeySearch
from secateur.engine.sql.row_upsert import RowUpsert
from secateur.engine.sql.stage import ExchangeKind, QueryStage, stage_relation
from secateur.errors import InternalError, ProtocolError
from secateur.partitioning.pruning.operand import Evaluated, expressions_in, numbered, places
from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.protocol.access import PolicyCommand
from secateur.protocol.catalog import ListedPartitions
from secateur.protocol.codec import decode, encode
from secateur.protocol.metrics import StageWork
from secateur.protocol.tokens import Privilege

_ID_BYTES: Final = 12


class Strategy(Enum):
    """The division of a statement whose partitions are on several members."""

    TWO_STAGE = "two_stage"
    """Each owner aggregates, sorts and limits its own rows; the coordinator combines."""
    PLACED = "placed"
    """Joins, groups and subqueries are computed where their rows are, as far as they are on one member; the rest moves
    between stages.
    """
    GATHER = "gather"
    """Each owner sends the rows and columns that the statement needs; the coordinator runs the whole statement."""


class PartialAtReaders(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statement over one external table, divided into what its readers compute and the rest.

    Attributes:
        partial: Answers the partial part over any rows of the scan, under the name of its relation.
        final: Answers the statement over all rows of ``partial``, which are the relation ``x0``. Without any the
            statement is answered over a table without rows.
    """

    partial: Fragment
    final: Fragment


class ExternalScan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows that a scan needs of an external table.

    Attributes:
        predicate: Rows outside of it are not needed.
        limit: As many rows of the table are enough, whichever they are; None: all are needed.
        title: The connector in words.
        listed: The partitions as they were when EXPLAIN listed them; None in a plan that runs.
        at_readers: The part that is computed where its rows are read, for a statement that reads nothing else; None
            where its rows are gathered as they are.
    """

    predicate: OpenPredicate = OpenPredicate()
    limit: int | None = None
    title: str = ""
    listed: ListedPartitions | None = None
    at_readers: PartialAtReaders | None = None


class ScanPlan(msgspec.Struct, frozen=True, omit_defaults=True):
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
        external: The rows that it needs of an external table, read when the statement runs; None for any other.
        policy: The condition of row policies that the statement puts on its rows, as text; empty for none.
        policies: The names of those policies.
        policy_command: Whose policies they are: of the table that a statement changes, those for its change.
    """

    relation: str
    table_id: int
    table: str
    alias: str
    columns: tuple[str, ...]
    tree: PartitionTree
    group: str
    replicated: bool
    keys: KeySearch = KeySearch()
    reason: str | None = None
    table_version: int = 1
    system: str | None = None
    external: ExternalScan | None = None
    policy: str = ""
    policies: tuple[str, ...] = ()
    policy_command: PolicyCommand = PolicyCommand.SELECT

    @property
    def is_fetched(self) -> bool:
        """Whether no member stores its rows: the coordinator fetches them when the statement runs."""
        return self.system is not None or self.external is not None


class FetchedRows(NamedTuple):
    """The rows of a scan that were fetched for one execution.

    Attributes:
        rows: The rows.
        partitions_read: The partitions of an external table that were read.
        partitions_total: The number of partitions that it has.
        members: The members that read them.
        work: The work of each of them, for EXPLAIN ANALYZE.
        is_partial: Whether the rows are those of ``PartialAtReaders.partial``, and not of the table.
    """

    rows: pa.Table
    partitions_read: int = 1
    partitions_total: int = 1
    members: tuple[str, ...] = ()
    work: tuple[StageWork, ...] = ()
    is_partial: bool = False


class PinnedScan(ScanPlan, frozen=True, kw_only=True):
    """A scan in a plan that is about to run, whose rows were fetched.

    Attributes:
        fetched: The rows. They never travel with a plan: a plan is read with scans that have none.
    """

    fetched: FetchedRows

    @property
    def given(self) -> tuple[str, pa.Table]:
        """The relation that the fragment of the plan reads, and its rows."""
        if self.fetched.is_partial:
            return stage_relation(0), self.fetched.rows
        return self.relation, self.fetched.rows.select(self.columns)


class SelectPlan(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """A SELECT, planned.

    Attributes:
        plan_id: A digest of the bytes of everything else, made by :meth:`named`. Equal ids therefore mean equal plans:
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
        views: The ids of the views and external tables of which it was made; none of them may have been replaced or
            dropped when it runs.
        reads_clock: Whether one of its parameters, behind those of the user and the lists of literals of the statement,
            is the time at which the statement starts: one time for all of it.
        undivided: The stages that run the user's own text over all rows of its tables, for ``SET pruning = verify``;
            nothing where that is not asked for.
        scatter_partitions_max: Up to how many partitions it is scattered, see :mod:`secateur.engine.sql.scatter`; 0 for
            a statement that never is.
        upsert: For the row changes of an INSERT of one row that changes the row with its key, the form that runs
            without DuckDB; None where there is none.
        is_upsert_only: Whether ``upsert`` is all that it says of the row changes, and ``local`` and the stages find the
            key of the row. The query for the row changes is another plan, which the controller makes when somebody
            needs it.
        claims: The parameters that are claims of whoever executes it, by index, with their names.
        privileges: What it needs with the table of its first scan, if it is the query of a change; nothing for a plan
            of another kind, which reads.
        origin: A digest of the text and the settings that the plan was made of: two statements with the same plan have
            ids of their own, by which their texts are found.
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
    is_sized: bool = False
    undivided: tuple[QueryStage, ...] = ()
    scatter_partitions_max: int = 0
    upsert: RowUpsert | None = None
    is_upsert_only: bool = False
    claims: tuple[tuple[int, str], ...] = ()
    privileges: tuple[Privilege, ...] = ()
    origin: str = ""

    def named(self) -> SelectPlan:
        """The plan under its own id, with places for its expressions.

        Cost: that of encoding it, some 50 microseconds for a statement over one table.
        """
        numbers = places(self._bounds(), self.parameter_count)
        plan = self
        if numbers:
            scans = (
                replace(
                    scan,
                    tree=replace(scan.tree, root=numbered(scan.tree.root, numbers)),
                    keys=numbered(scan.keys, numbers),
                    external=numbered(scan.external, numbers),
                )
                for scan in self.scans
            )
            plan = replace(self, scans=tuple(scans))
        return replace(plan, plan_id=_digest(plan.encoded()))

    def pinned(self, fetched: Mapping[str, FetchedRows]) -> SelectPlan:
        """The plan over these rows of its scans, by relation, for one execution."""
        local = self.local
        for scan in self.scans:
            if scan.relation in fetched and fetched[scan.relation].is_partial:
                assert scan.external is not None
                assert scan.external.at_readers is not None
                local = scan.external.at_readers.final
        return replace(
            self,
            scans=tuple(
                PinnedScan(**asdict(scan), fetched=fetched[scan.relation]) if scan.relation in fetched else scan
                for scan in self.scans
            ),
            local=local,
        )

    def as_written(self) -> SelectPlan:
        """Return the plan that runs the user's own text in DuckDB's kernel; itself if it has no stages for that."""
        return (
            replace(self, local=replace(self.local, arrow=None), stages=self.undivided, gathered=())
            if self.undivided
            else self
        )

    @property
    def is_estimated(self) -> bool:
        """Whether the plan depends on estimates, which choose between ways to join tables and to sort."""
        return self.is_sized or len(self.scans) > 1

    def __post_init__(self) -> None:
        check_stages(self.scans, self.stages)

    def _bounds(self) -> Iterator[object]:
        """The parts of the plan that may have expressions."""
        for scan in self.scans:
            yield scan.tree.root
            yield scan.keys
            yield scan.external

    @cached_property
    def expressions(self) -> tuple[Evaluated, ...]:
        """The expressions whose values stand behind its parameters."""
        return expressions_in(self._bounds())

    @cached_property
    def bound_count(self) -> int:
        """The number of values with which it is executed: its parameters, and the values of its expressions."""
        return self.expressions[-1].index + 1 if self.expressions else self.parameter_count

    @cached_property
    def reads_fetched_rows(self) -> bool:
        """Whether it reads rows that are fetched for each execution."""
        return any(scan.is_fetched for scan in self.scans)

    @cached_property
    def tables_read(self) -> frozenset[str]:
        """The case-folded names of the tables that it reads, system tables with their schema."""
        return frozenset(
            (scan.table if scan.system is None else f"secateur.{scan.system}").casefold() for scan in self.scans
        )

    @property
    def reads_system_tables_only(self) -> bool:
        """Whether it reads system tables, and nothing else."""
        return bool(self.scans) and all(scan.system is not None for scan in self.scans)

    @cached_property
    def system_tables(self) -> tuple[str, ...]:
        """The names of the system tables that it reads."""
        return tuple(dict.fromkeys(scan.system for scan in self.scans if scan.system is not None))

    @cached_property
    def searched(self) -> Fragment | None:
        """``local`` without its WHERE in the arrow kernel, for when a search has applied it.

        None if there is no such case.
        """
        return self._searched(self.local)

    @cached_property
    def over_few_rows(self) -> Fragment | None:
        """``local`` for the rows that a search by key finds, if they are few; None if no key is searched."""
        return self.searched or self._if_searched_by_key(self.local)

    @cached_property
    def first_stage_over_few_rows(self) -> Fragment | None:
        """The first stage in the same way."""
        first = self.stages[0]
        if first.scans != (0,):
            return None
        return self._searched(first.fragment) or self._if_searched_by_key(first.fragment)

    def _if_searched_by_key(self, fragment: Fragment) -> Fragment | None:
        return fragment if len(self.scans) == 1 and self.scans[0].keys.direct is not None else None

    def _searched(self, fragment: Fragment) -> Fragment | None:
        arrow = fragment.arrow
        if arrow is None or len(self.scans) != 1:
            return None
        direct = self.scans[0].keys.direct
        if direct is None or not direct.decides:
            return None
        return replace(fragment, arrow=replace(arrow, where=None))

    def encoded(self) -> bytes:
        """The plan as it travels: everything but its id, which is the digest of these bytes."""
        return encode(replace(self, plan_id="") if self.plan_id else self)

    @classmethod
    def decoded(cls, plan_id: str | None, data: bytes) -> SelectPlan:
        """Read the bytes of :meth:`encoded`, from a sender that need not be trusted where the id of the plan is known.

        Raises:
            ProtocolError: They are not the plan of that id.
        """
        digest = _digest(data)
        if plan_id not in (None, digest):
            raise ProtocolError(
                f"what was received as plan {plan_id} is not that plan: the process that sent it is of another version,"
                " or damaged"
            )
        return replace(decode(data, cls), plan_id=digest)


def _digest(data: bytes) -> str:
    """The id of the plan with these bytes."""
    return blake2b(data, digest_size=_ID_BYTES).hexdigest()


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
