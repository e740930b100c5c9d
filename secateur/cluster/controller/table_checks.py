"""Requests whose token is good for some tables only: the controller answers what concerns those, and nothing else.

As at members (:mod:`secateur.cluster.member.table_checks`), a request that is in no list here is refused. What a
statement needs, planning it tells: the planner finds no table that the token does not cover
(``rights`` of :class:`~secateur.cluster.controller.statement_replies.PlanningView`), and what it has planned is looked
at again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.statement_replies import StatementReplies
from secateur.cluster.member.table_checks import KINDS, PRIVILEGES, check_change, check_plan, check_ranges
from secateur.errors import TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.access import Rights, WriteKind
from secateur.protocol.catalog import GetRanges, GetTables, MakeRanges, RefreshStatistics
from secateur.protocol.changes import ChangeSeveralPartitions, ChangeTable, PublishLoad
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.tokens import Privilege
from secateur.wire import Request

_OPEN: Final = frozenset(
    {
        Operation.HELLO,
        Operation.GET_TOPOLOGY,
        Operation.GET_OWNER_PAGES,
        Operation.GET_TABLE_VERSIONS,  # numbers, by number
        Operation.PREPARE,
        Operation.EXPLAIN,
        Operation.ABORT_LOAD,  # of a load whose random id its maker alone knows
    }
)
"""Requests that tell nothing of a table, and statements, which are looked at when they are planned."""


class ControllerTableChecks:
    """Looks at the requests of clients with a token for some tables, before they are handled.

    Args:
        catalog: The catalog of now.
    """

    def __init__(self, statements: StatementReplies, catalog: Callable[[], Catalog]) -> None:
        self._statements = statements
        self._catalog = catalog
        self._checks: dict[OperationBase, Callable[[Any, Rights], None]] = {
            Operation.GET_TABLES: self._get_tables,
            Operation.GET_RANGES: self._get_ranges,
            Operation.REFRESH_STATISTICS: self._refresh_statistics,
            Operation.MAKE_RANGES: self._make_ranges,
            Operation.PUBLISH_LOAD: self._publish_load,
            Operation.CHANGE_SEVERAL_PARTITIONS: self._change_several,
            Operation.CHANGE_TABLE: self._change_table,
        }

    def check(self, request: Request[Any], rights: Rights) -> None:
        """Refuse a request that needs more than these rights.

        Raises:
            AuthenticationError: It does; nothing was done.
        """
        check = self._checks.get(request.operation)
        if check is not None:
            check(request.message, rights)
        elif request.operation not in _OPEN:
            raise rights.refusal_of(f"{request.operation.title!r}")

    def _get_tables(self, asked: GetTables, rights: Rights) -> None:
        if asked.name is not None:  # of all tables, the handler leaves out what may not be named
            rights.check_names(asked.name.casefold())

    def _get_ranges(self, asked: GetRanges, rights: Rights) -> None:
        check_ranges(self._catalog().tables(), asked, rights)

    def _refresh_statistics(self, asked: RefreshStatistics, rights: Rights) -> None:
        rights.check_reads((asked.table.casefold(),))

    def _make_ranges(self, asked: MakeRanges, rights: Rights) -> None:
        rights.check_write(asked.table, (Privilege.INSERT,))

    def _publish_load(self, asked: PublishLoad, rights: Rights) -> None:
        kind = KINDS.get(asked.mode)
        rights.check_write(asked.table, tuple(Privilege) if kind is None else PRIVILEGES[kind])
        table = self._catalog().find(asked.table)
        guards = None if table is None else rights.guards.get(table.origin)
        if table is None or guards is None:
            return
        if kind is None:
            raise rights.unseen(f"a load of the mode {asked.mode!r}", table.name)
        hidden = guards.replaced_by(kind) - set(table.primary_key)
        # Members have compared the rows with the policies of an INSERT, and keys with those of a DELETE.
        if hidden or guards.writes[kind].condition != guards.writes[WriteKind.INSERT].condition:
            raise rights.unseen(f"a load of the mode {asked.mode!r}", table.name)

    def _change_several(self, asked: ChangeSeveralPartitions, rights: Rights) -> None:
        plan = self._statements.plan(asked.plan)
        check_change(plan, asked.params, rights, self._table, asked.operation)

    def _change_table(self, asked: ChangeTable, rights: Rights) -> None:
        plan = self._statements.plan(asked.plan)
        check_change(plan, asked.params, rights, self._table, target=asked.table)
        if asked.returning is not None:
            check_plan(self._statements.plan(asked.returning), asked.params, rights, self._table)

    def _table(self, table_id: int) -> TableDef:
        found = self._catalog().by_id(table_id)
        if found is None:
            raise TopologyChangedError("a table of the statement was dropped, or has other columns: plan it again")
        return found
