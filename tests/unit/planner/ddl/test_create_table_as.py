from __future__ import annotations

from typing import Any

import pytest

from secateur.protocol import CreateTableAs


def test_the_query_says_what_the_columns_are(context: Any) -> None:
    statement = context.prepare(
        "CREATE TABLE big PRIMARY KEY (ID) PARTITION BY HASH (id) PARTITIONS 5 BACKUPS 2 AS SELECT id, sum(amount) AS"
        " total FROM orders GROUP BY id"
    )
    assert isinstance(statement, CreateTableAs)
    assert [(column.name, str(column.type), column.nullable) for column in statement.table.columns] == [
        ("id", "BIGINT", False),
        ("total", "DECIMAL(38,2)", True),
    ]
    assert (statement.table.primary_key, statement.table.scheme.partition_count, statement.table.backups) == (
        ("id",),
        5,
        2,
    )
    assert (
        statement.create
        == 'CREATE TABLE "big" ("id" BIGINT NOT NULL, "total" DECIMAL(38,2), PRIMARY KEY ("id")) PARTITION BY HASH'
        ' ("id") PARTITIONS 5 BACKUPS 2'
    )
    assert statement.select is not None
    assert statement.select.plan.columns == (("id", "BIGINT"), ("total", "DECIMAL(38,2)"))
    assert (statement.if_not_exists, statement.or_replace) == (False, False)


@pytest.mark.parametrize(
    ("sql", "if_not_exists", "or_replace", "with_data"),
    [
        ("CREATE TABLE IF NOT EXISTS x PRIMARY KEY (code) REPLICATED AS FROM airlines", True, False, True),
        ("CREATE TABLE x PRIMARY KEY (code) AS (SELECT code FROM airlines) WITH DATA;", False, False, True),
        ("create or replace table main.x primary key (code) as from airlines", False, True, True),
        (
            "CREATE TABLE x PRIMARY KEY (a) AS WITH q AS (SELECT 1 AS a) SELECT * FROM q WITH NO DATA",
            False,
            False,
            False,
        ),
    ],
)
def test_forms(context: Any, sql: str, *, if_not_exists: bool, or_replace: bool, with_data: bool) -> None:
    statement = context.prepare(sql)
    assert (statement.if_not_exists, statement.or_replace, statement.select is not None) == (
        if_not_exists,
        or_replace,
        with_data,
    )
    assert context.prepare(statement.create).tdef == statement.table


@pytest.mark.parametrize(
    ("sql", "params"), [("SELECT ? AS a, ? AS b", [1, "x"]), ("SELECT $n AS a, $s AS b", {"n": 1, "s": "x"})]
)
def test_the_types_of_parameters_are_those_of_columns(context: Any, sql: str, params: Any) -> None:
    statement = context.prepare(f"CREATE TABLE x PRIMARY KEY (a) AS {sql}", params)
    assert [str(column.type) for column in statement.table.columns] == ["INTEGER", "VARCHAR"]
    assert statement.select.params == (1, "x")
