"""The rows of a table that meet a condition of SQL, as the source of a DAG.

The planner of SQL reads the condition when the job starts, so the source keeps the partitions that a SELECT with the
condition would: its partition tree and its bounds on the primary key, bound to the parameters of the job. The members
search or scan these partitions, apply the whole condition, and read only the columns that this takes.

Source: ``SpecificPartitionsImapReaderPms`` of Hazelcast's job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import structs

from secateur.client.dbapi.parameters import plain_value
from secateur.dag.codec import portable
from secateur.dag.parameter import Param, bind_value
from secateur.dag.placement import Anywhere, OnPartitions, Placement
from secateur.dag.processor import Params, Processor
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SourceQuery, SupplierContext
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.runtime.services import PlannedQuery
from secateur.engine.sql.fragment_stage import FragmentStageSupplier, MemberScan
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DagError, InternalError, TopologyChangedError
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.job_description import SourceScan


class GivenValue(msgspec.Struct, frozen=True, array_like=True, tag="value"):
    """A value that does not depend on parameters."""

    value: Any


Binding: TypeAlias = Param | GivenValue


def binding_of(value: Any, where: str) -> Binding:
    """Wrap a value, as a statement takes it, unless it is a :class:`~secateur.dag.parameter.Param`.

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
