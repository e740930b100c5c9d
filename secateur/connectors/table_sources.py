"""The two sources behind ``table_source``: rows of the partitions that a job requires, and rows that meet a condition.

The partitions are determined when the job starts, at the coordinator, with the parameters bound; each member then gets
its subset. Nothing of it is kept with the DAG.

The planner of SQL reads a condition when the job starts, so its source keeps the partitions that a SELECT with the
condition would: its partition tree and its bounds on the primary key, bound to the parameters of the job. The members
search or scan these partitions, apply the whole condition, and read only the columns that this takes.

Source: ``SpecificPartitionsImapReaderPms`` of Hazelcast's job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from secateur.client.dbapi.parameters import plain_value
from secateur.connectors.functions import EmitTable
from secateur.dag.codec import portable
from secateur.dag.placement import Anywhere, OnPartitions, Placement
from secateur.dag.processor import Param, Params, Processor, bind_value
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SourceQuery, SupplierContext
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.runtime.services import MemberServices, PlannedQuery
from secateur.engine.sql.fragment_stage import FragmentStageSupplier, MemberScan
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DagError, InternalError, TopologyChangedError
from secateur.partitioning.pruning.key_range import KeyPrefix
from secateur.partitioning.types.arrow_layout import comparable, empty_table
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.job_description import SourceScan

_SEARCHES_MAX: Final = 64
"""More keys than this that may be in any partition are compared with its rows at once, not searched one by one."""


class KeyLookup(msgspec.Struct, frozen=True):
    """Restricts a scan to the rows of some keys.

    Attributes:
        columns: The columns of a key.
        is_prefix: Whether ``columns`` are the leading primary-key columns in order: then each key is a binary search,
            otherwise the partition's rows are compared.
        by_partition: The keys, canonical values in the order of ``columns``, by the partition that holds their rows.
        anywhere: Keys whose rows may be in any of the partitions that are read, because they do not name the whole
            partitioning key.
    """

    columns: tuple[str, ...]
    is_prefix: bool
    by_partition: Mapping[int, tuple[tuple[Any, ...], ...]]
    anywhere: tuple[tuple[Any, ...], ...] = ()

    def in_partition(self, partition: int) -> Sequence[tuple[Any, ...]]:
        """The keys whose rows may be in a partition."""
        return (*self.by_partition.get(partition, ()), *self.anywhere)

    def restricted(self, partitions: Sequence[int]) -> KeyLookup:
        """The keys in some of the partitions."""
        found = {partition: self.by_partition[partition] for partition in partitions if partition in self.by_partition}
        return structs.replace(self, by_partition=found)


class ReadRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows to read, resolved for one run.

    Attributes:
        table_id: The table.
        group: Its affinity group, by which the topology lists owners.
        partitions: Ids of the partitions to read, without duplicates.
        replicated: Whether every member has a full copy, so that any one of them will do.
        columns: The columns to read, in order; None for all.
        keys: The keys whose rows are wanted, or None for all rows.
    """

    table_id: int
    group: str
    partitions: Sequence[int]
    replicated: bool = False
    columns: tuple[str, ...] | None = None
    keys: KeyLookup | None = None

    def restricted(self, partitions: Sequence[int]) -> ReadRequest:
        """The part of the request for some of its partitions."""
        return structs.replace(
            self, partitions=partitions, keys=None if self.keys is None else self.keys.restricted(partitions)
        )


class PartitionsReader(ProcessorMetaSupplier):
    """A meta-supplier of table scans; subclasses define what to read.

    A replicated table is read on any participant.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    _request: ReadRequest | None = None
    _by_member: Mapping[str, tuple[int, ...]] = MappingProxyType({})

    def resolve(self, context: MetaContext) -> ReadRequest:
        """Determine what to read. Called once, in ``init``, when topology and parameters are known."""
        raise NotImplementedError(f"{type(self).__name__} has no resolve()")

    def init(self, context: MetaContext) -> None:
        self._request = self.resolve(context)
        if not self._request.replicated:
            self._by_member = context.owners(self._request.group, self._request.partitions)

    def placement(self) -> Placement:
        request = self._resolved()
        return Anywhere() if request.replicated else OnPartitions(request.group, self._by_member)

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        request = self._resolved()
        if request.replicated:
            return {member: PartitionsReaderSupplier(request) for member in members}
        return {
            member: PartitionsReaderSupplier(request.restricted(self._by_member.get(member, ()))) for member in members
        }

    def _resolved(self) -> ReadRequest:
        if self._request is None:
            raise InternalError("a partitions reader was asked for its placement before its init")
        return self._request


@portable("partitions-reader")
@dataclass(eq=False)
class PartitionsReaderSupplier(ProcessorSupplier):
    """Reads partitions of its member."""

    init_is_cooperative = True
    close_is_cooperative = True

    request: ReadRequest

    def init(self, context: SupplierContext) -> None:
        self._store = context.service(MemberServices).store

    def get(self, count: int) -> Sequence[Processor]:
        return [EmitTable(partial(self.read, self.request.partitions[index::count])) for index in range(count)]

    def read(self, partitions: Sequence[int]) -> pa.Table:
        """Return the rows of some of the partitions at one moment; without a copy, unless keys have to be compared.

        Raises:
            TopologyChangedError: A partition is not on this member any more.
        """
        request, keys = self.request, self.request.keys
        if keys is None:
            return self._store.relation(request.table_id, partitions, request.columns)
        if keys.is_prefix and len(keys.anywhere) <= _SEARCHES_MAX:
            found = [
                self._store.relation(request.table_id, (p,), request.columns, KeyPrefix(key))
                for p in partitions
                for key in keys.in_partition(p)
            ]
            return pa.concat_tables(found) if found else self._store.relation(request.table_id, (), request.columns)
        wanted = [key for partition in partitions for key in keys.by_partition.get(partition, ())]
        wanted += keys.anywhere if partitions else ()
        columns = request.columns or tuple(self._store.relation(request.table_id, ()).column_names)
        rows = self._store.relation(
            request.table_id, partitions, (*columns, *(name for name in keys.columns if name not in columns))
        )
        return rows_with_keys(rows, keys.columns, wanted).select(list(columns))


def rows_with_keys(table: pa.Table, columns: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows whose ``columns`` equal one of ``keys``, in their order.

    Args:
        table: The rows.
        columns: The columns of a key.
        keys: Canonical values in the order of ``columns``; None among them matches nothing.

    Returns:
        A copy of those rows. Cost: O(rows) for one column, O(rows * keys) for several.
    """
    keys = [key for key in keys if None not in key]
    if not keys:
        return empty_table(table.schema)
    stored = [comparable(table.column(name)) for name in columns]
    wanted = [
        comparable(pa.array(values, table.schema.field(name).type))
        for name, values in zip(columns, zip(*keys, strict=True), strict=True)
    ]
    if len(columns) == 1:
        return table.filter(pc.is_in(stored[0], value_set=wanted[0]))
    mask = None
    for key in zip(*wanted, strict=True):
        matches = None
        for column, value in zip(stored, key, strict=True):
            equal = pc.equal(column, value)
            matches = equal if matches is None else pc.and_(matches, equal)
        mask = matches if mask is None else pc.or_(mask, matches)
    return table.filter(mask)


class GivenValue(msgspec.Struct, frozen=True, array_like=True, tag="value"):
    """A value that does not depend on parameters."""

    value: Any


Binding: TypeAlias = Param | GivenValue


def binding_of(value: Any, where: str) -> Binding:
    """Wrap a value, as a statement takes it, unless it is a :class:`~secateur.dag.processor.Param`.

    Raises:
        ParameterError: No column holds it; the message has ``where``.
    """
    return value if isinstance(value, Param) else GivenValue(plain_value(value, where))


def bound(binding: Binding, params: Params) -> Any:
    """The value for the parameters of a job.

    Raises:
        ParameterError: The job was started without that parameter.
    """
    return binding.value if isinstance(binding, GivenValue) else bind_value(binding, params)


_NOTHING_LEFT_OUT: Final = "these values of the parameters leave no partition out"


@portable("table-condition")
@dataclass(eq=False)
class ConditionSource(ProcessorMetaSupplier):
    """The meta-supplier of :func:`~secateur.connectors.table.table_source` with a condition.

    Attributes:
        name: The table.
        condition: A condition of SQL over its columns.
        values: The values of its placeholders in order; empty if they are named.
        named_values: The values of its placeholders by name.
        columns: The columns wanted, in order; None for all.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    name: str
    condition: str
    values: tuple[Binding, ...]
    named_values: dict[str, Binding]
    columns: tuple[str, ...] | None

    def query(self, params: Params) -> SourceQuery:
        columns = "*" if self.columns is None else ", ".join(map(quoted, self.columns))
        # On lines of its own: a comment at the end of the condition must not reach the bracket.
        sql = f"SELECT {columns} FROM {quoted(self.name)} WHERE (\n{self.condition}\n)"
        if self.named_values:
            return SourceQuery(sql, {name: bound(value, params) for name, value in self.named_values.items()})
        return SourceQuery(sql, [bound(value, params) for value in self.values])

    def init(self, context: MetaContext) -> None:
        if not isinstance(context.planned, PlannedQuery):
            raise InternalError(f"vertex {context.vertex!r} was initialised without the plan of its condition")
        plan, params, partitions = self._query = context.planned
        _check(plan, context.vertex, self.name)
        scan = plan.scans[0]
        table = context.table(scan.table)
        if (table.table_id, table.version) != (scan.table_id, scan.table_version):
            raise TopologyChangedError(
                f"table {scan.table} has changed while the job started: try again", table=scan.table, retry_safe=True
            )
        self._fragment, self._params = plan.local, tuple(params)
        self._by_member = MappingProxyType({} if scan.replicated else context.owners(scan.group, partitions[0]))
        self._read = MemberScan(
            scan.relation,
            scan.table_id,
            tuple(partitions[0]) if scan.replicated else (),
            scan.columns,
            key_slice=scan.keys.bind(params),
            published=None,
        )

    def placement(self) -> Placement:
        # Somebody has to say which columns there are when no partition is read; any member has a replicated table.
        return OnPartitions(self._query.plan.scans[0].group, self._by_member) if self._by_member else Anywhere()

    def scan(self) -> SourceScan:
        plan, _, partitions = self._query
        scan = plan.scans[0]
        read, total = len(partitions[0]), scan.tree.total
        return SourceScan(
            scan.table,
            read,
            total,
            tree=None if scan.replicated else str(scan.tree),
            filter=self.condition,
            columns=scan.columns,
            searches=self._read.key_slice is not None,
            reason=None if scan.replicated or read < total else scan.reason or _NOTHING_LEFT_OUT,
        )

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {
            member: ConditionReader(
                self._fragment,
                structs.replace(self._read, partitions=self._by_member.get(member, self._read.partitions)),
                self._params,
            )
            for member in members
        }


@portable("table-condition-reader")
@dataclass(eq=False)
class ConditionReader(ProcessorSupplier):
    """Reads partitions of its member, and applies the condition.

    Attributes:
        fragment: The condition and the columns, as the planner has made them.
        scan: The rows to read here; its processors share the partitions.
        params: The values of the parameters of the fragment.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    fragment: Fragment
    scan: MemberScan
    params: tuple[Any, ...]

    def init(self, context: SupplierContext) -> None:
        count = context.local_parallelism
        own = replace(context, params=self.params)
        self._shares = [
            FragmentStageSupplier(
                self.fragment, (), (structs.replace(self.scan, partitions=self.scan.partitions[index::count]),)
            )
            for index in range(count)
        ]
        for share in self._shares:
            share.init(own)

    def get(self, count: int) -> Sequence[Processor]:
        return [processor for share in self._shares for processor in share.get(1)]


def _check(plan: SelectPlan, vertex: str, name: str) -> None:
    """Refuse what is no condition on the rows of one table.

    Raises:
        DagError: So it is; says what to do.
    """
    if plan.system_tables:
        raise DagError(f"vertex {vertex!r}: the rows of {name} are at the controller; SELECT them and read the result")
    if len(plan.scans) != 1 or not plan.local.is_row_by_row:
        because = "" if plan.gather_reason is None else f" ({plan.gather_reason})"
        raise DagError(
            f"vertex {vertex!r}: the condition on {name} cannot be applied to each row by itself where the rows are"
            f"{because}: leave out subqueries and clauses behind the condition, and pass values as parameters, or join"
        )
