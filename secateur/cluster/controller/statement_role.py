"""The role that a statement needs, by what it does; see :mod:`secateur.protocol.access` for requests."""

from __future__ import annotations

from typing import assert_never

from secateur.errors import AuthenticationError
from secateur.planner.statement import (
    AlterTable,
    Command,
    CreateExternalTable,
    CreateIndex,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    KillJob,
    KillStatement,
    SetGlobalPruning,
)
from secateur.protocol.statements import (
    BackupTo,
    ChangeStatement,
    CoordinatedChange,
    CopyFrom,
    CopyTo,
    CreateTableAs,
    Done,
    InsertRows,
    InsertSelect,
    PlanText,
    PreparedStatement,
    RestoreFrom,
    SelectStatement,
    SetOption,
    SetPruning,
    SetTimeout,
    ShowSettings,
)
from secateur.protocol.table_rights import TokenRole
from secateur.wire import PeerInfo


def role_of_statement(statement: Command | PreparedStatement) -> TokenRole:
    """The lowest role that may execute a statement."""
    match statement:
        case (
            SelectStatement()
            | Done()
            | CopyTo()
            | BackupTo()
            | SetPruning()
            | SetTimeout()
            | SetOption()
            | ShowSettings()
            | PlanText()
        ):
            return TokenRole.READ
        case InsertRows() | InsertSelect() | ChangeStatement() | CoordinatedChange() | CopyFrom():
            return TokenRole.WRITE
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
            return TokenRole.ADMIN
        case _:
            assert_never(statement)


def check_statement(statement: Command | PreparedStatement, peer: PeerInfo) -> None:
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
