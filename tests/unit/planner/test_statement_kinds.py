"""What each kind of statement says of itself, and that a kind that says nothing is held for the most dangerous one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest

from secateur.errors import AuthenticationError
from secateur.planner import Command, ExplainFormat, ExplainStatement, KillJob
from secateur.protocol import (
    AccessRecord,
    BackupTo,
    GrantedToken,
    PlanText,
    PreparedStatement,
    Privilege,
    Pruning,
    Rights,
    SetPruning,
    Statement,
    TableGrant,
    TokenRole,
)

READ, WRITE, ADMIN, CODE = TokenRole.READ, TokenRole.WRITE, TokenRole.ADMIN, TokenRole.CODE
ROLES = {
    "SelectStatement": READ,
    "Done": READ,
    "CopyTo": READ,
    "BackupTo": READ,
    "SetPruning": READ,
    "SetTimeout": READ,
    "SetOption": READ,
    "ShowSettings": READ,
    "PlanText": READ,
    "PlannedSelect": READ,
    "ExplainStatement": READ,
    "InsertRows": WRITE,
    "EvaluatedInsert": WRITE,
    "InsertSelect": WRITE,
    "ChangeStatement": WRITE,
    "CoordinatedChange": WRITE,
    "CopyFrom": WRITE,
    "CreateTableAs": ADMIN,
    "CreateTableFrom": ADMIN,
    "RestoreFrom": ADMIN,
    "CreateTable": ADMIN,
    "CreateExternalTable": ADMIN,
    "CreateIndex": ADMIN,
    "CommentOn": ADMIN,
    "CreateType": ADMIN,
    "CreateView": ADMIN,
    "AlterColumns": ADMIN,
    "AlterTable": ADMIN,
    "DropTable": ADMIN,
    "DropIndex": ADMIN,
    "DropType": ADMIN,
    "DropView": ADMIN,
    "SetGlobalPruning": ADMIN,
    "CreateRole": ADMIN,
    "DropRole": ADMIN,
    "GrantTables": ADMIN,
    "SecureTable": ADMIN,
    "CreatePolicy": ADMIN,
    "DropPolicy": ADMIN,
    "CreateResourceGroup": ADMIN,
    "AlterResourceGroup": ADMIN,
    "DropResourceGroup": ADMIN,
    "ForgetTenant": ADMIN,
    "KillStatement": ADMIN,
    "KillJob": ADMIN,
    "InsertValues": CODE,  # only planned: whoever executes it gets an EvaluatedInsert
}
GRANTS = (*(TableGrant("orders", each) for each in Privilege), TableGrant("customers", Privilege.SELECT))
RIGHTS = Rights.of(GrantedToken("t1", WRITE, tables=GRANTS), AccessRecord())


class Unheard(Statement):
    """A kind that says nothing of itself."""


def kinds(of: type[Statement] = Statement) -> Iterator[tuple[str, type[Statement]]]:
    """The classes of statements that there are, by their names, without those that only others derive from."""
    for kind in of.__subclasses__():
        if kind.__subclasses__() or kind.__name__.startswith("_"):
            yield from kinds(kind)
        elif kind is not Unheard:
            yield kind.__name__, kind


def test_every_kind_has_its_role() -> None:
    assert {name: kind.role for name, kind in kinds()} == ROLES
    named = {(get_origin(kind) or kind).__name__ for kind in (*get_args(PreparedStatement), *get_args(Command))}
    assert named <= ROLES.keys()


def test_a_kind_that_says_nothing_needs_the_highest_role_and_all_tables() -> None:
    unheard = Unheard()
    assert unheard.role is max(TokenRole)
    assert unheard.is_change
    assert not unheard.is_cached
    assert unheard.refused_to_others
    with pytest.raises(AuthenticationError, match="this statement needs a token for all tables"):
        unheard.check_tables(RIGHTS)


@pytest.mark.parametrize("name", sorted(ROLES))
def test_a_kind_reads_or_changes_tables_that_it_names_or_is_refused(name: str) -> None:
    """Only these say which tables they need; of all others the definition of the base class refuses."""
    says = dict(kinds())[name].check_tables is not Statement.check_tables
    assert says == (ROLES[name] <= WRITE and name not in ("SelectStatement", "Done", "PlanText"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM orders JOIN customers USING (customer_id)",
        "EXPLAIN SELECT * FROM orders",
        "INSERT INTO orders SELECT * FROM orders",
        "INSERT INTO orders VALUES ('C1', 1, 2.5, NULL, NULL)",
        "UPDATE orders SET amount = 1 WHERE id IN (SELECT 1 FROM customers)",
        "DELETE FROM orders WHERE customer_id = 'C1' AND id = 1",
        "COPY (SELECT * FROM customers) TO 'x.csv'",
        "BACKUP TABLE orders, customers TO 'folder'",
        "SET pruning = off",
        "SHOW pruning",
    ],
)
def test_what_the_rights_cover(context: Any, sql: str) -> None:
    context.prepare(sql).check_tables(RIGHTS)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM metrics", "read on metrics"),
        ("EXPLAIN UPDATE orders SET amount = (SELECT max(value) FROM metrics)", "read on metrics"),
        ("SELECT * FROM orders WHERE id IN (SELECT value FROM metrics)", "read on metrics"),
        ("INSERT INTO customers SELECT * FROM customers", "insert on customers"),
        ("INSERT INTO orders (customer_id, id) SELECT host, 1 FROM metrics", "read on metrics"),
        ("DELETE FROM customers WHERE customer_id = 'C1' AND name = ''", "delete on customers"),
        ("COPY metrics TO 'x.csv'", "read on metrics"),
        ("COPY customers FROM 'x.csv'", "insert on customers"),
        ("BACKUP TO 'folder'", "BACKUP of all tables"),
        ("BACKUP TABLE metrics TO 'folder'", "read on metrics"),
        ("RESTORE FROM 'folder'", "this statement"),
        ("KILL JOB 'j'", "this statement"),
        ("DROP TABLE orders", "this statement"),
        ("CREATE TABLE a PRIMARY KEY (id) AS SELECT id FROM orders", "this statement"),
    ],
)
def test_what_they_do_not_cover(context: Any, sql: str, said: str) -> None:
    with pytest.raises(AuthenticationError, match=said):
        context.prepare(sql).check_tables(RIGHTS)


def test_what_a_connection_executes_for_others() -> None:
    """It sets nothing of the connection, and neither reads nor writes files of its machine."""
    sent = {(get_origin(kind) or kind).__name__ for kind in get_args(PreparedStatement)}
    files = {"CreateTableFrom", "CopyFrom", "CopyTo", "BackupTo", "RestoreFrom"}
    refused = {name for name, kind in kinds() if kind.refused_to_others}
    assert refused & sent == {*files, "SetPruning", "SetTimeout", "SetOption"}


def test_what_changes_something() -> None:
    explained = ExplainStatement(KillJob("j"), ExplainFormat.TEXT, analyze=False, offset=8)
    read = [SetPruning(Pruning.ON), BackupTo("folder", ()), PlanText(("plan",)), explained]
    assert [statement.is_change for statement in read] == [False] * 4
    assert PlanText(("plan",), analyzed="DELETE FROM t").is_change
    assert KillJob("j").is_change
