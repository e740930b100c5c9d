"""Checks that a token covers a statement: its role, and the tables that the statement reads and changes.

A statement that is not named here is refused, or needs the highest role. Requests are checked by
:mod:`secateur.protocol.access`.
"""

from __future__ import annotations

from collections.abc import Iterator

from secateur.errors import AuthenticationError
from secateur.planner import statement as planned
from secateur.protocol import statements
from secateur.protocol.table_rights import TableRights, TokenRole
from secateur.wire import PeerInfo


def check_tables(statement: planned.Statement, rights: TableRights) -> None:
    """Refuse a statement that needs more than these rights. The role is checked elsewhere.

    Raises:
        AuthenticationError: The statement needs more.
    """
    match statement:
        case planned.PlannedSelect():
            _check_query(statement, rights)
        case planned.ExplainStatement(target):
            check_tables(target, rights)
        case statements.CopyTo(select):
            _check_query(select, rights)
        case statements.EvaluatedInsert(insert):
            rights.check_write(insert.table.name)
        case statements.CopyFrom(table):
            rights.check_write(table.name)
        case statements.InsertSelect(table, _, select) | statements.ChangeStatement(table, _, select):
            rights.check_write(table.name)
            _check_query(select, rights)
        case statements.CoordinatedChange(table, select, _, returning):
            rights.check_write(table.name)
            _check_query(select, rights)
            if returning is not None:
                _check_query(returning, rights)
        case statements.BackupTo(_, tables):
            if not tables:
                raise rights.refusal_of("BACKUP of all tables")
            rights.check_reads(table.casefold() for table in tables)
        case statements.SetPruning() | statements.SetTimeout() | statements.SetOption() | statements.ShowSettings():
            pass
        case _:  # definitions, and what the whole cluster is asked
            raise rights.refusal_of("this statement")


def _check_query(query: planned.PlannedSelect, rights: TableRights) -> None:
    for part in _parts(query):
        rights.check_reads(part.plan.tables_read)


def _parts(query: planned.PlannedSelect) -> Iterator[planned.PlannedSelect]:
    """The query, and all queries that run before or in place of it."""
    yield query
    if query.materialized is not None:
        for step in query.materialized.steps:
            yield from _parts(step.query)
        yield from _parts(query.materialized.outer)


def role_of_statement(statement: planned.Command | statements.PreparedStatement) -> TokenRole:
    """The lowest role that may execute a statement: the highest for one that is not known to need less."""
    match statement:
        case (
            statements.SelectStatement()
            | statements.Done()
            | statements.CopyTo()
            | statements.BackupTo()
            | statements.SetPruning()
            | statements.SetTimeout()
            | statements.SetOption()
            | statements.ShowSettings()
            | statements.PlanText()
        ):
            return TokenRole.READ
        case (
            statements.InsertRows()
            | statements.InsertSelect()
            | statements.ChangeStatement()
            | statements.CoordinatedChange()
            | statements.CopyFrom()
        ):
            return TokenRole.WRITE
        case _:  # definitions, and what the whole cluster is asked
            return TokenRole.ADMIN


def check_statement(statement: planned.Command | statements.PreparedStatement, peer: PeerInfo) -> None:
    """Refuse a statement for which the token of a client is not enough.

    Raises:
        AuthenticationError: It needs another role.
    """
    needed = role_of_statement(statement)
    if peer.token_role < needed:
        raise AuthenticationError(
            f"this statement needs a token with the role {needed.title!r}, and the token {peer.token_id!r} of this"
            f" connection has the role {peer.token_role.title!r}; nothing was done"
        )
