"""Statements that are read by parsers of our own: a word that DuckDB's parser refuses at its place is refused, wherever
it is put.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import Any

import duckdb
import pytest

from secateur.errors import Error
from secateur.planner import Planner
from secateur.planner.text import tokenize

TABLES = (
    "CREATE TABLE t (k INTEGER, a INTEGER, s VARCHAR, PRIMARY KEY (k))",
    "CREATE TABLE e (eid INTEGER, b INTEGER, PRIMARY KEY (eid))",
)
STATEMENTS = (
    "TRUNCATE TABLE t",
    "DROP TABLE t",
    "DROP VIEW IF EXISTS v",
    "DROP INDEX i",
    "CREATE INDEX j ON t (a)",
    "CREATE VIEW w (x) AS SELECT k FROM t",
    "INSERT INTO t (k, a) VALUES (1, 2), (3, 4)",
    "INSERT OR REPLACE INTO t BY NAME SELECT 1 AS k",
    "INSERT INTO t VALUES (1, 2, 'x') ON CONFLICT (k) DO UPDATE SET a = 3 WHERE t.a > 1 RETURNING k",
    "UPDATE t SET a = 1 WHERE k = 2",
    "UPDATE t AS x SET a = 1, s = 'y' FROM e WHERE eid = k RETURNING k",
    "DELETE FROM t USING e WHERE eid = k RETURNING a",
    "MERGE INTO t USING e ON k = eid WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, a) VALUES (eid, b)",
    "COPY t TO 'x.csv'",
    "SELECT k, a FROM t WHERE k = 1 GROUP BY k, a HAVING a > 1 ORDER BY k LIMIT 1",
    "WITH c AS (SELECT k FROM t) SELECT count(*) FROM c JOIN e ON k = eid",
)
WORDS = (
    *(
        "CASCADE",
        "RESTRICT",
        "CONCURRENTLY",
        "ONLY",
        "DEFAULT",
        "DESC",
        "DISTINCT",
        "ALL",
        "SOME",
        "LATERAL",
        "FREEZE",
        "SIMILAR",
        "UNIQUE",
        "NOT",
        "NULL",
    ),
    *(
        "LIMIT 1",
        "ORDER BY k",
        "FOR UPDATE",
        "INTO x",
        "RETURNING *",
        "PARTITION BY k",
        "VALUES",
        "WINDOW",
        "VERBOSE",
        "WITH",
        "(x)",
        "*",
        ",",
        "1",
        "'q'",
    ),
)


SHARE = max(1, int(8 / float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))))
"""Of how many words one is tried at a place; the next place has the next ones, so that every word comes to every kind
of place.
"""


def variants(sql: str) -> Iterator[str]:
    """The statement with a word too many, at every place."""
    partition_keys = [0, *(token.end + 1 for token in tokenize(sql))]
    return (
        f"{sql[:place]} {word} {sql[place:]}"
        for number, place in enumerate(partition_keys)
        for word in WORDS[number % SHARE :: SHARE]
    )


def parses(database: duckdb.DuckDBPyConnection, sql: str) -> bool:
    try:
        database.extract_statements(sql)
    except duckdb.Error:
        return False
    return True


@pytest.fixture
def tables(context: Any) -> Any:
    for ddl in TABLES:
        context.create(ddl)
    context.create_view("CREATE VIEW v AS SELECT k FROM t")
    return context


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_word_too_many_is_never_ignored(tables: Any, sql: str) -> None:
    wrong = []
    tried = 0
    with duckdb.connect() as database:
        for text in chain([sql], variants(sql)):
            tried += 1
            try:
                tables.prepare(text)
            except Error:
                continue
            if not parses(database, text):
                wrong.append(text)
    assert tried > 80 / SHARE
    assert wrong == []


def test_a_target_may_still_have_an_alias(tables: Any) -> None:
    for sql in ("TRUNCATE t AS x", "TRUNCATE t x", "UPDATE t x SET a = 1", "DELETE FROM t AS x WHERE x.k = 1"):
        tables.prepare(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET a = 99 FROM (SELECT * FROM e WHERE eid = k) AS q",
        "UPDATE t SET a = 99 FROM LATERAL (SELECT * FROM e WHERE eid = k) AS q",
        "UPDATE t AS x SET a = 99 FROM e, (SELECT * FROM e AS f WHERE f.eid = x.k) AS q",
        "DELETE FROM t USING (SELECT * FROM e WHERE eid = k) AS q",
        "MERGE INTO t USING (SELECT * FROM e WHERE eid = k) AS q ON k = eid WHEN MATCHED THEN DELETE",
    ],
)
def test_sources_of_a_change_do_not_see_its_target(tables: Any, sql: str) -> None:
    with duckdb.connect() as database:
        for ddl in TABLES:
            database.execute(ddl)
        with pytest.raises(duckdb.BinderException, match="not found"):
            database.execute(sql)
    with pytest.raises(Error, match=r"column .k. does not exist|.x. names no table"):
        tables.prepare(sql)


def test_sources_of_a_change_see_each_other(tables: Any) -> None:
    tables.prepare("UPDATE t SET a = q.b FROM e, (SELECT * FROM e AS f WHERE f.eid = e.eid) AS q WHERE t.k = q.eid")
    tables.prepare("DELETE FROM t USING e, LATERAL (SELECT e.b + 1 AS c) AS q WHERE t.k = c")


def test_the_rows_of_a_long_insert_are_not_parsed_once_more(monkeypatch: pytest.MonkeyPatch, tables: Any) -> None:
    seen = []
    monkeypatch.setattr("secateur.engine.kernels.duckdb.kernel.DuckDBKernel.parse", lambda _, sql: seen.append(sql))
    Planner().prepare("INSERT INTO t (k, a) VALUES " + ", ".join(f"({n}, {n})" for n in range(1000)), (), tables)
    assert seen == ["INSERT INTO t (k, a) VALUES (0)"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM (FROM e) AS q(x, y)",
        "SELECT x FROM ((e JOIN t ON eid = k)) AS q(x, y)",
        "FROM ((SELECT 1 AS x) AS q JOIN (t JOIN e ON eid = k) ON TRUE)",
        "FROM (((VALUES (1), (2)))) AS q(x)",
        "FROM (e PIVOT (count(*) FOR b IN (1))) AS q",
    ],
)
def test_parentheses_around_a_query_or_a_join_are_not(tables: Any, sql: str) -> None:
    tables.prepare(sql)
