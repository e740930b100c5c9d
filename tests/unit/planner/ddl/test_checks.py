"""DEFAULT, CHECK and COMMENT in CREATE TABLE, and that what is printed is read again."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.tables import CheckDef, TableDef
from secateur.planner import CommentOn, CreateTable
from secateur.planner.ddl.table_sql import table_sql


def created(context: Any, sql: str) -> TableDef:
    statement = context.prepare(sql)
    assert isinstance(statement, CreateTable)
    return statement.tdef


def test_what_is_printed_is_read_again(context: Any) -> None:
    table = created(
        context,
        "CREATE TABLE t (k INTEGER DEFAULT 3 PRIMARY KEY, a INTEGER DEFAULT 5 NOT NULL CHECK (a > 0) CONSTRAINT q CHECK"
        " (a < k) COMMENT 'it''s a', \"B b\" VARCHAR DEFAULT 'x -- y', CHECK (a <> 7 -- seven\n AND lower(\"b B\") <>"
        " 'Q''R'),"
        " s STRUCT(x INTEGER) DEFAULT {'x': 1} CHECK (S.x > 0), n TIMESTAMP DEFAULT current_timestamp, CONSTRAINT w"
        " CHECK (k BETWEEN 1 AND 10)) BACKUPS 2 COMMENT 'all'",
    )
    assert [(column.name, column.default, column.comment, column.nullable) for column in table.columns] == [
        ("k", "3", None, False),
        ("a", "5", "it's a", False),
        ("B b", "'x -- y'", None, True),
        ("s", "{'x': 1}", None, True),
        ("n", "now()", None, True),
    ]
    assert table.checks == (
        CheckDef("t_a_check", "a > 0", ("a",)),
        CheckDef("q", "a < k", ("k", "a")),
        CheckDef("t_check", "a <> 7 AND lower(\"b B\") <> 'Q''R'", ("a", "B b")),
        CheckDef("t_s_check", "S.x > 0", ("s",)),
        CheckDef("w", "k BETWEEN 1 AND 10", ("k",)),
    )
    assert table.comment == "all"
    assert created(context, table_sql(table)) == table
    assert "\n" not in table_sql(table)


@pytest.mark.parametrize(
    ("checks", "names"),
    [
        ("CHECK (a > 0), CHECK (a > 1), CHECK (a > 2)", ["t_a_check", "t_a_check1", "t_a_check2"]),
        ("CHECK (a > k), CHECK (k > a)", ["t_check", "t_check1"]),
        ("CHECK (a > 0), CONSTRAINT T_A_check CHECK (a > 1)", ["t_a_check1", "T_A_check"]),
    ],
)
def test_a_check_without_a_name_gets_one(context: Any, checks: str, names: list[str]) -> None:
    table = created(context, f"CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, {checks})")
    assert [check.name for check in table.checks] == names


@pytest.mark.parametrize(
    ("sql", "column", "comment"),
    [
        ("COMMENT ON TABLE orders IS 'x'", None, "x"),
        ("COMMENT ON TABLE main.Orders IS $$it's$$", None, "it's"),
        ("COMMENT ON TABLE orders IS NULL", None, None),
        ("COMMENT ON COLUMN orders.AMOUNT IS 'y'", "amount", "y"),
        ("COMMENT ON COLUMN main.orders.amount IS NULL", "amount", None),
    ],
)
def test_comment_on(context: Any, sql: str, column: str | None, comment: str | None) -> None:
    assert context.prepare(sql) == CommentOn(context.table("orders"), column, comment)
