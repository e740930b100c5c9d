"""``SET pruning = verify``: a statement is compared with the user's own text, run undivided by DuckDB over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import secateur
from secateur.errors import PruningMismatchError
from secateur.planner import select
from secateur.planner.distribute import NotDivided
from secateur.planner.dml.searched_change import SearchedChange
from secateur.planner.stages import DistributedQuery, distributed


@pytest.fixture(scope="module")
def connection() -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute(
            "CREATE TABLE verified (k INTEGER, a INTEGER, s VARCHAR, PRIMARY KEY (k)) PARTITION BY HASH (k)"
            " PARTITIONS 7"
        )
        connection.execute(
            "CREATE TABLE others (j INTEGER, b INTEGER, PRIMARY KEY (j)) PARTITION BY HASH (j) PARTITIONS 5"
        )
        connection.execute("INSERT INTO verified SELECT i, i % 7, 'x' || i % 3 FROM range(200) r(i)")
        connection.execute("INSERT INTO others SELECT i, i % 5 FROM range(150) r(i)")
        connection.execute("SET pruning = verify")
        yield connection


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT a, count(*) FROM verified GROUP BY a", id="in two"),
        pytest.param("SELECT v.s, sum(o.b) FROM verified v JOIN others o ON v.a = o.j GROUP BY 1", id="placed"),
        pytest.param("SELECT * FROM verified WHERE k = 3", id="of one partition"),
        pytest.param("SELECT s, median(a) FROM verified WHERE k IN (1, 2, 3) GROUP BY s", id="gathered"),
        pytest.param("SELECT k FROM verified WHERE k IN (SELECT j FROM others WHERE b = 1)", id="in steps"),
        pytest.param(
            "SELECT v.k, o.j FROM (SELECT k FROM verified WHERE a > 1) v POSITIONAL JOIN (SELECT j FROM others WHERE b"
            " > 1) o",
            id="positional join",
        ),
        pytest.param("SELECT k FROM verified LIMIT 5", id="any rows"),
        pytest.param("SELECT k FROM verified ORDER BY a LIMIT 5", id="any of rows that are alike"),
        pytest.param("SELECT k, random() FROM verified", id="random numbers"),
        pytest.param("SELECT count(*) FROM verified WHERE current_timestamp > TIMESTAMPTZ '2020-01-01'", id="a clock"),
    ],
)
@pytest.mark.smoke
def test_no_false_alarm(connection: secateur.Connection, sql: str) -> None:
    connection.execute(sql).fetchall()


def test_the_users_text_is_what_is_compared_with(
    connection: secateur.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_wrongly(*args: Any) -> DistributedQuery | NotDivided:
        found = distributed(*args)
        assert isinstance(found, DistributedQuery)
        found.drafts[0].sql = found.drafts[0].sql.replace("> 4", "> 5")
        return found

    monkeypatch.setattr(select, "distributed", cut_wrongly)
    with pytest.raises(PruningMismatchError, match="differ"):
        connection.execute("SELECT s, count(*) FROM verified WHERE a > 4 AND abs(a) > 0 GROUP BY s").fetchall()


CHANGES = [
    pytest.param("UPDATE verified SET a = a + 1 WHERE k IN (3, 4)", id="update"),
    pytest.param("UPDATE verified SET k = k + 1000 WHERE k > 197", id="update of the key"),
    pytest.param("UPDATE verified SET a = b FROM others WHERE k = j AND b = 2", id="update from"),
    pytest.param("UPDATE verified SET a = 7, s = 'y' FROM few WHERE k = few.j", id="update from a view"),
    pytest.param("DELETE FROM verified WHERE a = 3 AND k > 150", id="delete"),
    pytest.param("DELETE FROM verified USING others WHERE k = j AND b = 4 AND k > 100", id="delete using"),
    pytest.param(
        "MERGE INTO verified v USING others o ON v.k = o.j + 60 WHEN MATCHED AND o.b = 1 THEN DELETE WHEN MATCHED THEN"
        " UPDATE SET a = o.b WHEN NOT MATCHED THEN INSERT (k, a) VALUES (o.j + 60, -o.b)",
        id="merge",
    ),
    pytest.param("INSERT INTO verified VALUES (5, 1, 'z') ON CONFLICT DO UPDATE SET a = excluded.a", id="upsert"),
    pytest.param("UPDATE verified SET a = (random() * 9)::INTEGER WHERE k < 9", id="random numbers"),
    pytest.param("UPDATE verified SET a = 0 WHERE false", id="nothing"),
    pytest.param(
        "UPDATE verified SET s = now()::VARCHAR || current_date || localtime"
        " WHERE k < 9 AND today() > DATE '2020-01-01'",
        id="a clock",
    ),
    pytest.param(
        "MERGE INTO verified v USING others o ON v.k = o.j"
        " WHEN MATCHED AND current_timestamp > TIMESTAMPTZ '2020-01-01' THEN UPDATE SET s = current_timestamp::VARCHAR",
        id="a clock in a merge",
    ),
]


@pytest.fixture
def changed(connection: secateur.Connection) -> secateur.Connection:
    connection.execute("CREATE OR REPLACE VIEW few AS SELECT * FROM others WHERE b = 3 AND j < 20")
    return connection


@pytest.mark.parametrize("sql", CHANGES)
def test_no_false_alarm_of_a_change(changed: secateur.Connection, sql: str) -> None:
    changed.execute(sql)


def faulty(original: Any, **fault: Any) -> Any:
    return lambda self: original(replace(self, **fault))


@pytest.mark.parametrize(
    ("method", "fault", "sql"),
    [
        pytest.param("in_partitions", {"where": None}, "DELETE FROM verified WHERE k IN (11, 12)", id="of partitions"),
        pytest.param(
            "row_changes",
            {"where": None},
            "DELETE FROM verified USING others WHERE k = j AND j = 13",
            id="using",
        ),
        pytest.param("in_partitions", {"where": None}, "UPDATE verified SET a = -1 WHERE k IN (11, 12)", id="update"),
        pytest.param(
            "in_partitions",
            {"where": None},
            "UPDATE verified SET s = now()::VARCHAR WHERE k IN (11, 12)",
            id="update that mentions a clock",
        ),
    ],
)
def test_a_change_is_compared_with_what_duckdb_makes_of_the_text(
    changed: secateur.Connection, monkeypatch: pytest.MonkeyPatch, method: str, fault: Any, sql: str
) -> None:
    before = sorted(changed.execute("SELECT * FROM verified").fetchall(), key=repr)
    monkeypatch.setattr(SearchedChange, method, faulty(getattr(SearchedChange, method), **fault))
    with pytest.raises(PruningMismatchError, match="DuckDB leaves"):
        changed.execute(sql)
    assert sorted(changed.execute("SELECT * FROM verified").fetchall(), key=repr) == before
