from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import Error, NotSupportedError, ParameterError, SchemeError, SqlSyntaxError, UnknownColumnError
from secateur.planner.statement import CreateTableAs


def test_the_query_says_what_the_columns_are(bench: Any) -> None:
    statement = bench.prepare(
        "CREATE TABLE big PRIMARY KEY (ID) PARTITION BY HASH (id) PARTITIONS 5 BACKUPS 2 AS SELECT id, sum(amount) AS total FROM orders GROUP BY id"
    )
    assert isinstance(statement, CreateTableAs)
    assert [(column.name, str(column.type), column.nullable) for column in statement.tdef.columns] == [
        ("id", "BIGINT", False),
        ("total", "DECIMAL(38,2)", True),
    ]
    assert (statement.tdef.primary_key, statement.tdef.scheme.partition_count, statement.tdef.backups) == (("id",), 5, 2)
    assert statement.insert == 'INSERT INTO "big" SELECT id, sum(amount) AS total FROM orders GROUP BY id'
    assert not statement.if_not_exists


@pytest.mark.parametrize(
    ("sql", "insert"),
    [
        ("CREATE TABLE IF NOT EXISTS x PRIMARY KEY (code) REPLICATED AS FROM airlines", 'INSERT INTO "x" FROM airlines'),
        ("CREATE TABLE x PRIMARY KEY (code) AS (SELECT code FROM airlines) WITH DATA;", 'INSERT INTO "x" (SELECT code FROM airlines)'),
        ("CREATE TABLE x PRIMARY KEY (a) AS WITH q AS (SELECT 1 AS a) SELECT * FROM q WITH NO DATA", None),
    ],
)
def test_forms(bench: Any, sql: str, insert: str | None) -> None:
    assert bench.prepare(sql).insert == insert


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("CREATE TABLE x AS SELECT 1 AS a", SchemeError, "write CREATE TABLE x PRIMARY KEY (columns) AS", 16, id="no key"),
        pytest.param("CREATE TABLE x PRIMARY KEY (b) AS SELECT 1 AS a", SchemeError, "'b', which is no column of the query; it has a", 16, id="no such key"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) AS SELECT 1 AS a, 2 AS A", SchemeError, "two columns of one name", 35, id="a name twice"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) AS SELECT 1 AS a, {'b': 1} AS s", NotSupportedError, "CAST it in the query", 35, id="a type of no column"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) AS", SqlSyntaxError, "expected a query", 34, id="no query"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) AS SELECT amout AS a FROM orders", UnknownColumnError, "did you mean amount?", 42, id="unknown column"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) PARTITION BY HASH (b) PARTITIONS 2 AS SELECT 1 AS a, 2 AS b", SchemeError, "b", 32, id="no scheme"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) SOMEHOW AS SELECT 1 AS a", SqlSyntaxError, "PARTITION BY, BACKUPS, REPLICATED or AS", 32, id="no clause"),
        pytest.param("CREATE TABLE x PRIMARY KEY (a) AS SELECT ? AS a", ParameterError, "takes no parameters", 42, id="a parameter"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql)
    assert type(caught.value) is kind
    assert message in str(caught.value)
    assert caught.value.details["column"] == column
