"""Requests whose token is good for some tables only: a member answers what concerns those, and nothing else.

Each request that such a client may make stands in one list, with what it needs. A request that is not in it is refused,
so a new one is closed until somebody has thought about it. Other clients pay for one comparison with None.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, cast

from secateur.cluster.member.statements.snapshots import MemberSnapshots
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import ProtocolError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import GetRanges
from secateur.protocol.change_feed import BoundChanges, ReadChanges
from secateur.protocol.changes import ChangeOnePartition, StageRows, WriteRows
from secateur.protocol.many import ChangeMany, ExecuteMany, WriteMany
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.query import Execute, ExecuteFirstStage, GetRows, Profile
from secateur.protocol.snapshots import CloseSnapshot, OpenSnapshot, ReadSnapshot
from secateur.protocol.steps import SteppedQuery
from secateur.protocol.tokens import TableRights
from secateur.wire import Handled, Reply, Request


def check_change(plan: SelectPlan, rights: TableRights) -> None:
    """Refuse a change that these rights do not cover: of the first table of its query, which may read others.

    The controller makes the same check.

    Raises:
        AuthenticationError: They do not.
        ProtocolError: The plan reads no table, so it is not that of a change.
    """
    if not plan.scans:
        raise ProtocolError(f"plan {plan.plan_id} is not the plan of a change: it reads no table")
    rights.check_write(plan.scans[0].table)
    rights.check_reads(plan.tables_read)


def check_ranges(tables: Sequence[TableDef], asked: GetRanges, rights: TableRights) -> None:
    """Refuse the ranges of a table that these rights do not cover.

    Raises:
        AuthenticationError: They do not.
    """
    for table in tables:
        if table.scheme.reference == asked.reference:
            rights.check_reads((table.name.casefold(),))


_Check = Callable[[Any, TableRights], Awaitable[None] | None]

_OPEN: Final = frozenset(
    {
        Operation.HELLO,
        Operation.GET_OWNERS,
        Operation.GET_OWNER_PAGES,
        Operation.NEXT_ROWS,  # of the open result of this connection
        Operation.CLOSE_RESULT,
        Operation.GET_RETURNED_ROWS,  # of a change whose random id its maker alone knows
    }
)
"""Requests that tell nothing of a table, or only what a request before it has let pass."""


class MemberTableChecks:
    """Looks at the requests of clients with a token for some tables, before they are handled.

    Args:
        statements: Knows plans by their ids.
        snapshots: Knows which table a snapshot is of.
        table: A table by its id; raises where there is none.
        tables: All tables.
    """

    def __init__(
        self,
        statements: StatementRunner,
        snapshots: MemberSnapshots,
        table: Callable[[int], TableDef],
        tables: Callable[[], Sequence[TableDef]],
    ) -> None:
        self._statements = statements
        self._snapshots = snapshots
        self._table = table
        self._tables = tables
        self._checks: dict[OperationBase, _Check] = {
            Operation.EXECUTE: self._execute,
            Operation.EXECUTE_FIRST_STAGE: self._execute_first_stage,
            Operation.EXECUTE_MANY: self._execute_many,
            Operation.PROFILE: self._profile,
            Operation.OPEN_SNAPSHOT: self._open_snapshot,
            Operation.READ_SNAPSHOT: self._use_snapshot,
            Operation.CLOSE_SNAPSHOT: self._use_snapshot,
            Operation.CHANGE_ONE_PARTITION: self._change,
            Operation.CHANGE_MANY: self._change,
            Operation.GET_ROWS: self._read_table,
            Operation.READ_CHANGES: self._read_table,
            Operation.BOUND_CHANGES: self._read_table,
            Operation.WRITE_ROWS: self._write_table,
            Operation.WRITE_MANY: self._write_table,
            Operation.STAGE_ROWS: self._write_table,
            Operation.GET_RANGES: self._get_ranges,
        }

    def handle(self, request: Request[Any], rights: TableRights, handler: Callable[[Request[Any]], Handled]) -> Handled:
        """Answer a request that needs no more than these rights.

        Raises:
            AuthenticationError: It needs more; nothing was done.
        """
        check = self._checks.get(request.operation)
        if check is None:
            if request.operation not in _OPEN:
                raise rights.refusal_of(f"{request.operation.title!r}")
            return handler(request)
        checking = check(request.message, rights)
        return handler(request) if checking is None else _after(checking, request, handler)

    def _execute(self, asked: Execute, rights: TableRights) -> Awaitable[None] | None:
        return self._read_plans((asked.plan, *_plans_of(asked.steps)), rights)

    def _execute_many(self, asked: ExecuteMany, rights: TableRights) -> Awaitable[None] | None:
        return self._read_plans((asked.plan,), rights)

    def _execute_first_stage(self, asked: ExecuteFirstStage, rights: TableRights) -> Awaitable[None] | None:
        return self._read_plans((asked.plan,), rights)

    def _profile(self, asked: Profile, rights: TableRights) -> Awaitable[None] | None:
        return self._execute(asked.run, rights)

    def _open_snapshot(self, asked: OpenSnapshot, rights: TableRights) -> Awaitable[None] | None:
        # Partitions that the snapshot has already are answered as they are.
        self._use_snapshot(asked, rights)
        return self._execute(asked.run, rights)

    def _use_snapshot(self, asked: OpenSnapshot | ReadSnapshot | CloseSnapshot, rights: TableRights) -> None:
        table = self._snapshots.table_of(asked.snapshot)
        if table is not None:
            rights.check_reads((table.casefold(),))

    def _change(self, asked: ChangeOnePartition | ChangeMany, rights: TableRights) -> Awaitable[None] | None:
        return self._with_plans((asked.plan,), lambda plan: check_change(plan, rights))

    def _read_table(self, asked: GetRows | ReadChanges | BoundChanges, rights: TableRights) -> None:
        rights.check_reads((self._table(asked.table_id).name.casefold(),))

    def _write_table(self, asked: WriteRows | WriteMany | StageRows, rights: TableRights) -> None:
        rights.check_write(self._table(asked.table_id).name)

    def _get_ranges(self, asked: GetRanges, rights: TableRights) -> None:
        check_ranges(self._tables(), asked, rights)

    def _read_plans(self, plan_ids: Sequence[str], rights: TableRights) -> Awaitable[None] | None:
        return self._with_plans(plan_ids, lambda plan: rights.check_reads(plan.tables_read))

    def _with_plans(self, plan_ids: Sequence[str], check: Callable[[SelectPlan], None]) -> Awaitable[None] | None:
        """Check plans, now if all of them are kept here."""
        try:
            for plan_id in plan_ids:
                check(self._statements.kept_plan(plan_id))
        except TopologyChangedError:
            return self._with_fetched(plan_ids, check)
        return None

    async def _with_fetched(self, plan_ids: Sequence[str], check: Callable[[SelectPlan], None]) -> None:
        for plan_id in plan_ids:
            check(await self._statements.plan(plan_id))


def _plans_of(stepped: SteppedQuery | None) -> Iterator[str]:
    """The ids of all plans of a query in steps."""
    if stepped is None:
        return
    for part in (*(step.query for step in stepped.steps), stepped.outer):
        yield part.plan
        yield from _plans_of(part.steps)


async def _after(
    checking: Awaitable[None], request: Request[Any], handler: Callable[[Request[Any]], Handled]
) -> Reply[Any]:
    await checking
    answer = handler(request)
    return answer if isinstance(answer, Reply) else await cast("Awaitable[Reply[Any]]", answer)
