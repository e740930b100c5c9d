"""The tables that a planned statement reads and changes, for tokens that are good for some tables only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from secateur.planner.statement import (
    AlterTable,
    CreateExternalTable,
    CreateIndex,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    ExplainStatement,
    KillJob,
    KillStatement,
    PlannedSelect,
    SetGlobalPruning,
    Statement,
)
from secateur.protocol.statements import (
    BackupTo,
    ChangeStatement,
    CoordinatedChange,
    CopyFrom,
    CopyTo,
    CreateTableAs,
    EvaluatedInsert,
    InsertSelect,
    RestoreFrom,
    SetOption,
    SetPruning,
    SetTimeout,
    ShowSettings,
)
from secateur.protocol.table_rights import TableRights


def check_tables(statement: Statement, rights: TableRights) -> None:
    """Refuse a statement that needs more than these rights. Whether the role allows it is asked elsewhere.

    Raises:
        AuthenticationError: It does.
    """
    match statement:
        case PlannedSelect():
            _check_query(statement, rights)
        case ExplainStatement(target):
            check_tables(target, rights)
        case CopyTo(select):
            _check_query(select, rights)
        case EvaluatedInsert(insert):
            rights.check_write(insert.table.name)
        case CopyFrom(table):
            rights.check_write(table.name)
        case InsertSelect(table, _, select) | ChangeStatement(table, _, select):
            rights.check_write(table.name)
            _check_query(select, rights)
        case CoordinatedChange(table, select, _, returning):
            rights.check_write(table.name)
            _check_query(select, rights)
            if returning is not None:
                _check_query(returning, rights)
        case BackupTo(_, tables):
            if not tables:
                raise rights.refusal_of("BACKUP of all tables")
            rights.check_reads(table.casefold() for table in tables)
        case SetPruning() | SetTimeout() | SetOption() | ShowSettings():
            pass
        case (
            CreateTable()
            | CreateTableAs()
            | CreateExternalTable()
            | AlterTable()
            | DropTable()
            | CreateView()
            | DropView()
            | CreateIndex()
            | DropIndex()
            | RestoreFrom()
            | SetGlobalPruning()
            | KillStatement()
            | KillJob()
        ):
            raise rights.refusal_of("this statement")
        case _:
            assert_never(statement)


def _check_query(query: PlannedSelect, rights: TableRights) -> None:
    for part in _parts(query):
        rights.check_reads(part.plan.tables_read)


def _parts(query: PlannedSelect) -> Iterator[PlannedSelect]:
    """The query, and all queries that run before or in place of it."""
    yield query
    if query.materialized is not None:
        for step in query.materialized.steps:
            yield from _parts(step.query)
        yield from _parts(query.materialized.outer)
