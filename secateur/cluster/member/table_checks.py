"""Requests of principals that may not do everything: a member answers what they may see, and nothing else.

Each request that such a client may make stands in one list, with what it needs. A request that is not in it is refused,
so a new one is closed until somebody has thought about it. Other clients pay for one comparison with None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, cast

from secateur.cluster.member.changes.row_guards import RowGuards
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import PolicyError, ProtocolError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.access import Rights, WriteKind, session_call
from secateur.protocol.catalog import GetRanges
from secateur.protocol.change_feed import BoundChanges, ReadChanges
from secateur.protocol.changes import ROW_CHANGES, ChangeOnePartition, StageRows, WriteRows
from secateur.protocol.many import ChangeMany, ExecuteMany, WriteMany
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.query import Execute, GetRows
from secateur.protocol.query_parts import SteppedQuery
from secateur.protocol.snapshots import CloseSnapshot, OpenSnapshot, ReadSnapshot
from secateur.protocol.tokens import Privilege
from secateur.wire import Handled, Reply, Request, decode_rows, has_few_rows

_ADMITTED_MAX: Final = 4096
_NEEDED: Final = {"upsert": Privilege.UPDATE, "delete": Privilege.DELETE}
"""What the operations on the rows that a query finds need."""
KINDS: Final = {
    "append": WriteKind.INSERT,
    "ignore": WriteKind.INSERT,
    "upsert": WriteKind.UPSERT,
    "delete": WriteKind.DELETE,
}
"""What is done with rows that come without a plan, by their mode."""
PRIVILEGES: Final = {
    WriteKind.INSERT: (Privilege.INSERT,),
    WriteKind.UPSERT: (Privilege.INSERT, Privilege.UPDATE),
    WriteKind.DELETE: (Privilege.DELETE,),
}


def check_plan(
    plan: SelectPlan,
    params: Sequence[Any],
    rights: Rights,
    table: Callable[[int], TableDef],
) -> None:
    """Refuse a plan that reads what these rights hide: members do not trust whoever names it.

    The controller makes the same check.

    Args:
        plan: The plan.
        params: The values of its parameters.
        rights: What the sender may do.
        table: A table by its id.

    Raises:
        AuthenticationError: It reads a table that was not granted, or a parameter that stands for a claim has another
            value than the token.
        TopologyChangedError: It was made for other policies: it is to be planned again.
    """
    if _was_admitted(rights, plan.plan_id, params):
        return
    rights.check_reads(plan.tables_read)
    for index, claim in plan.claims:
        if index >= len(params) or params[index] != rights.claim(claim):
            raise PolicyError(
                f"the statement has another value for {session_call(claim)} than the token {rights.token.id!r} of this"
                " connection: nothing was done"
            )
    for scan in plan.scans:
        if scan.external is not None:
            continue
        if scan.system is not None:
            guard = rights.listed(scan.system)
        else:
            guards = rights.guards.get(table(scan.table_id).origin)
            guard = None if guards is None else guards.scans[scan.policy_command]
        if scan.policy != ("" if guard is None else guard.condition.text):
            raise TopologyChangedError(
                f"the statement was planned for other row policies on {scan.table}: plan it again", table=scan.table
            )
    if len(rights.admitted) >= _ADMITTED_MAX:
        rights.admitted.clear()
    rights.admitted[plan.plan_id] = tuple((index, rights.claim(claim)) for index, claim in plan.claims)


def _was_admitted(rights: Rights, plan_id: str, params: Sequence[Any]) -> bool:
    """Whether a plan was found to be good before, and the values of its claims are those of then."""
    claims = rights.admitted.get(plan_id)
    return claims is not None and all(index < len(params) and params[index] == value for index, value in claims)


def check_change(
    plan: SelectPlan,
    params: Sequence[Any],
    rights: Rights,
    table: Callable[[int], TableDef],
    operation: str = ROW_CHANGES,
    target: str | None = None,
) -> None:
    """Refuse a change that these rights do not cover.

    The controller makes the same check.

    Args:
        plan: The plan of its query, which may read other tables.
        params: As for :func:`check_plan`, with the next two.
        rights: What the sender may do.
        table: A table by its id.
        operation: What becomes of the rows that the query finds.
        target: The table that is changed; None for the first one of the query.

    Raises:
        AuthenticationError: They do not.
        TopologyChangedError: As :func:`check_plan`.
        ProtocolError: The plan is not that of such a change.
    """
    if not plan.scans and (target is None or not plan.privileges):
        raise ProtocolError(f"plan {plan.plan_id} is not the plan of a change: it reads no table")
    needed = plan.privileges or tuple(Privilege)
    is_of_kind = operation == ROW_CHANGES or plan.privileges == (_NEEDED.get(operation),)
    if rights.guards and not (plan.privileges and is_of_kind):  # the rows that it finds are those of another command
        raise ProtocolError(f"plan {plan.plan_id} is not that of a change of this kind: prepare the statement again")
    rights.check_write(plan.scans[0].table if target is None else target, needed)
    check_plan(plan, params, rights, table)


def check_ranges(tables: Sequence[TableDef], asked: GetRanges, rights: Rights) -> None:
    """Refuse the ranges of a table that these rights do not cover.

    Raises:
        AuthenticationError: They do not.
    """
    for table in tables:
        if table.scheme.reference == asked.reference:
            rights.check_names(table.name.casefold())


_Check = Callable[[Request[Any], Rights], Awaitable[None] | None]

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
    """Looks at the requests of clients that may not do everything, before they are handled."""

    def __init__(
        self,
        plans: MemberPlans,
        storage: MemberStorage,
        row_guards: RowGuards,
    ) -> None:
        self._plans = plans
        self._snapshots = storage.snapshots
        self._table = storage.places.table
        self._tables = storage.places.tables
        self._row_guards = row_guards
        self._checks: dict[OperationBase, _Check] = {
            Operation.EXECUTE: lambda request, rights: self._read(request.message, rights),
            Operation.EXECUTE_FIRST_STAGE: lambda request, rights: self._read_plans(
                (request.message.plan,), request.message.params, rights
            ),
            Operation.EXECUTE_MANY: self._execute_many,
            Operation.PROFILE: lambda request, rights: self._read(request.message.run, rights),
            Operation.OPEN_SNAPSHOT: self._open_snapshot,
            Operation.READ_SNAPSHOT: self._use_snapshot,
            Operation.CLOSE_SNAPSHOT: self._use_snapshot,
            Operation.CHANGE_ONE_PARTITION: self._change,
            Operation.CHANGE_MANY: self._change_many,
            Operation.GET_ROWS: self._read_table,
            Operation.READ_CHANGES: self._read_table,
            Operation.BOUND_CHANGES: self._read_table,
            Operation.WRITE_ROWS: self._write_rows,
            Operation.WRITE_MANY: self._write_many,
            Operation.STAGE_ROWS: self._stage_rows,
            Operation.GET_RANGES: lambda request, rights: check_ranges(self._tables(), request.message, rights),
        }

    def handle(self, request: Request[Any], rights: Rights, handler: Callable[[Request[Any]], Handled]) -> Handled:
        """Answer a request that needs no more than these rights.

        Raises:
            AuthenticationError: It needs more; nothing was done.
        """
        check = self._checks.get(request.operation)
        if check is None:
            if request.operation not in _OPEN:
                raise rights.refusal_of(f"{request.operation.title!r}")
            return handler(request)
        checking = check(request, rights)
        return handler(request) if checking is None else _after(checking, request, handler)

    def _read(self, asked: Execute, rights: Rights) -> Awaitable[None] | None:
        # The parts of a query in steps have its parameters, and behind them the values of the steps before.
        return self._read_plans((asked.plan, *_plans_of(asked.steps)), asked.params, rights)

    def _execute_many(self, request: Request[ExecuteMany], rights: Rights) -> Awaitable[None] | None:
        asked = request.message

        def check(plan: SelectPlan) -> None:
            for params in asked.params:
                check_plan(plan, params, rights, self._table)

        return self._with_plans((asked.plan,), check)

    def _open_snapshot(self, request: Request[OpenSnapshot], rights: Rights) -> Awaitable[None] | None:
        # Partitions that the snapshot has already are answered as they are.
        self._use_snapshot(request, rights)
        return self._with_plans((request.message.run.plan,), lambda plan: self._check_snapshot(plan, rights))

    def _check_snapshot(self, plan: SelectPlan, rights: Rights) -> None:
        rights.check_reads(plan.tables_read)
        for scan in plan.scans:
            if not scan.is_fetched and self._table(scan.table_id).origin in rights.guards:
                raise rights.unseen("a snapshot", scan.table)

    def _use_snapshot(
        self, request: Request[OpenSnapshot] | Request[ReadSnapshot] | Request[CloseSnapshot], rights: Rights
    ) -> None:
        snapshot = self._snapshots.find(request.message.snapshot)
        if snapshot is not None:
            table = snapshot.table
            rights.check_reads((table.casefold(),))
            for each in self._tables():
                if each.name.casefold() == table.casefold() and each.origin in rights.guards:
                    raise rights.unseen("a snapshot", table)

    def _change(self, request: Request[ChangeOnePartition], rights: Rights) -> Awaitable[None] | None:
        asked = request.message
        if asked.returning is None:
            return self._with_plans((asked.plan,), lambda plan: self._check_change(plan, asked.params, asked, rights))

        def check(plan: SelectPlan) -> None:
            if plan.plan_id == asked.plan:
                self._check_change(plan, asked.params, asked, rights)
            else:
                check_plan(plan, asked.params, rights, self._table)

        return self._with_plans((asked.plan, asked.returning), check)

    def _change_many(self, request: Request[ChangeMany], rights: Rights) -> Awaitable[None] | None:
        asked = request.message

        def check(plan: SelectPlan) -> None:
            for params in asked.params:
                self._check_change(plan, params, asked, rights)

        return self._with_plans((asked.plan,), check)

    def _check_change(
        self, plan: SelectPlan, params: Sequence[Any], asked: ChangeOnePartition | ChangeMany, rights: Rights
    ) -> None:
        check_change(plan, params, rights, self._table, asked.operation)

    def _read_table(
        self, request: Request[GetRows] | Request[ReadChanges] | Request[BoundChanges], rights: Rights
    ) -> None:
        table = self._table(request.message.table_id)
        rights.check_reads((table.name.casefold(),))
        if table.origin in rights.guards:
            raise rights.unseen(f"{request.operation.title!r}", table.name)

    def _write_rows(self, request: Request[WriteRows], rights: Rights) -> Awaitable[None] | None:
        asked = request.message
        return self._write(asked.table_id, asked.mode, [request.payload], rights)

    def _write_many(self, request: Request[WriteMany], rights: Rights) -> Awaitable[None] | None:
        asked = request.message
        return self._write(asked.table_id, asked.mode, [rows for _, rows in asked.writes], rights)

    def _stage_rows(self, request: Request[StageRows], rights: Rights) -> Awaitable[None] | None:
        asked = request.message
        # What becomes of them is said when the load is published, and is looked at by the controller.
        mode = "delete" if asked.are_keys else "append"
        return self._write(asked.table_id, mode, [request.payload], rights)

    def _write(
        self, table_id: int, mode: str, payloads: Sequence[bytes | memoryview], rights: Rights
    ) -> Awaitable[None] | None:
        table, kind = self._table(table_id), KINDS.get(mode)
        rights.check_write(table.name, tuple(Privilege) if kind is None else PRIVILEGES[kind])
        if table.origin not in rights.guards:
            return None
        if kind is None:
            raise rights.unseen(f"a write of the mode {mode!r}", table.name)
        if all(map(has_few_rows, payloads)):
            for payload in payloads:
                self._row_guards.check(rights, table, kind, decode_rows(payload))
            return None
        return self._check_many(table, kind, payloads, rights)

    async def _check_many(
        self, table: TableDef, kind: WriteKind, payloads: Sequence[bytes | memoryview], rights: Rights
    ) -> None:
        for payload in payloads:
            rows = await asyncio.to_thread(decode_rows, payload)
            self._row_guards.check(rights, table, kind, rows)

    def _read_plans(self, plan_ids: Sequence[str], params: Sequence[Any], rights: Rights) -> Awaitable[None] | None:
        return self._with_plans(plan_ids, lambda plan: check_plan(plan, params, rights, self._table))

    def _with_plans(self, plan_ids: Sequence[str], check: Callable[[SelectPlan], None]) -> Awaitable[None] | None:
        """Check plans, now if all of them are kept here."""
        for plan_id in plan_ids:
            plan = self._plans.used(plan_id)
            if plan is None:
                return self._with_fetched(plan_ids, check)
            check(plan)
        return None

    async def _with_fetched(self, plan_ids: Sequence[str], check: Callable[[SelectPlan], None]) -> None:
        for plan_id in plan_ids:
            check(await self._plans.plan(plan_id))


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
