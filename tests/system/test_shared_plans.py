"""Texts that differ only in literals share one plan, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import httpx
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.server import HttpServer

AS_IT_STANDS = " -- with a plan of its own"
COLUMNS = "k INTEGER, d DATE, s VARCHAR, x DECIMAL(9, 2), PRIMARY KEY (k, d)"


@pytest.fixture
def table(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(f"CREATE TABLE {table_name} ({COLUMNS}) PARTITION BY HASH (k) PARTITIONS 8")
    conn.execute(
        f"INSERT INTO {table_name} SELECT range, DATE '2024-01-01' + CAST(range % 7 AS INTEGER), 's' || range,"
        " range / 4 FROM range(100)"
    )
    return table_name


@pytest.fixture
def other(conn: secateur.Connection, table_name: str) -> Iterator[str]:
    name = f"{table_name}_names"
    conn.execute(f"CREATE TABLE {name} (s VARCHAR PRIMARY KEY, title VARCHAR) REPLICATED")
    conn.execute(f"INSERT INTO {name} SELECT 's' || range, 'S' || range FROM range(100)")
    yield name
    conn.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {t} WHERE k = {n}",
        "SELECT k, 1.50, 'a', s FROM {t} WHERE k = {n} AND d = '2024-01-0{n}'",
        "SELECT s, x FROM {t} WHERE k = '{n}' AND d >= DATE '2024-01-0{n}'",
        "SELECT count(*), sum(x) FROM {t} WHERE k IN ({n}, 1{n}, 99) AND x > 1.{n}",
        "SELECT d, count(*) FROM {t} WHERE s = 's{n}' GROUP BY 1 ORDER BY 2 LIMIT 3",
        "SELECT k FROM {t} WHERE NOT (d < '2024-01-0{n}' OR x = 1.5e{n}) AND k BETWEEN -{n} AND {n} LIMIT 100",
        "SELECT t.k, o.title FROM {t} t JOIN {o} o ON t.s = o.s WHERE t.k = {n} AND o.s <> 'x'",
        "SELECT k FROM {t} WHERE k = {n} AND s IN (SELECT s FROM {o} WHERE title <> 'S{n}0')",
    ],
)
def test_new_literals_have_the_plan_of_others(conn: secateur.Connection, table: str, other: str, sql: str) -> None:
    for number in range(1, 6):
        text = sql.format(t=table, o=other, n=number)
        own, shared = conn.execute(text + AS_IT_STANDS), conn.execute(text)
        assert own.stats is not None
        assert shared.stats is not None
        assert (own.stats.plan_cached, shared.stats.plan_cached) == (False, number > 2)
        assert shared.stats.partitions_read == own.stats.partitions_read
        assert shared.description == own.description
        assert sorted(shared.fetchall()) == sorted(own.fetchall())


def test_new_literals_have_the_serving_call_of_a_parameter(conn: secateur.Connection, table: str) -> None:
    for number in range(5):
        cursor = conn.execute(f"SELECT s FROM {table} WHERE k = {number}")
        assert cursor.fetchall() == [(f"s{number}",)]
        assert cursor.stats is not None
        assert cursor.stats.execution == "local"
    assert (f"SELECT s FROM {table} WHERE k = ?", int) in conn._session.serving_calls


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT k = {n} FROM {t} WHERE s LIKE 's{n}%'", id="names and patterns"),
        pytest.param("SELECT k FROM {t} WHERE k = {n} + 1", id="an expression"),
        pytest.param("SELECT (SELECT max(s) FROM {t} WHERE k = {n}) FROM {t} WHERE k = 1", id="names of queries"),
        pytest.param("SELECT k FROM {t} WHERE d > '2024-01-0{n}' ORDER BY k", id="a range, and rows that are sorted"),
        pytest.param("SELECT k FROM {t} JOIN {o} USING (s) WHERE k < {n}", id="a range, and a join"),
        pytest.param("SELECT k FROM {t} WHERE k = {n} LIMIT {n}", id="a limit"),
    ],
)
def test_what_decides_about_a_plan_stays_in_the_text(
    conn: secateur.Connection, table: str, other: str, sql: str
) -> None:
    for number in range(1, 6):
        stats = conn.execute(sql.format(t=table, o=other, n=number)).stats
        assert stats is not None
        assert not stats.plan_cached


def test_changes_share_plans(conn: secateur.Connection, table: str) -> None:
    for number in range(200, 206):
        insert = conn.execute(f"INSERT INTO {table} VALUES ({number}, '2024-02-03', 'it''s {number}', {number}.25)")
        update = conn.execute(f"UPDATE {table} SET x = {number}.5, d = '2024-03-03' WHERE k = {number}")
        delete = conn.execute(f"DELETE FROM {table} WHERE k = {number - 1} AND d = DATE '2024-03-03'")
        assert (insert.rowcount, update.rowcount, delete.rowcount) == (1, 1, int(number > 200))
        assert update.stats is not None
        assert delete.stats is not None
        assert (update.stats.plan_cached, delete.stats.plan_cached) == (number > 201, number > 201)
        assert (update.stats.partitions_read, delete.stats.partitions_read) == (1, 1)
    found = conn.execute(f"SELECT k, d, s, CAST(x AS VARCHAR) FROM {table} WHERE k > 100").fetchall()
    assert found == [(205, date(2024, 3, 3), "it's 205", "205.50")]


def test_errors_show_the_text_of_the_user(conn: secateur.Connection, table: str) -> None:
    for number in range(1, 5):
        sql = f"SELECT k FROM {table}\nWHERE k = {'1' * number} AND nope = 1"
        with pytest.raises(secateur.ProgrammingError, match=rf"(?s)WHERE k = {'1' * number} AND nope = 1\n"):
            conn.execute(sql)
        with pytest.raises(secateur.DataError, match=f"'a{number}'"):
            conn.execute(f"SELECT k FROM {table} WHERE k = 'a{number}'").fetchall()
        with pytest.raises(secateur.IntegrityError, match=f"k={number}, d=2024-01-0{number + 1}"):
            conn.execute(f"INSERT INTO {table} (k, d) VALUES ({number}, '2024-01-0{number + 1}')")


def test_a_shared_plan_goes_with_its_table(cluster: Cluster, conn: secateur.Connection, table: str) -> None:
    for number in range(4):
        assert conn.execute(f"SELECT s FROM {table} WHERE k = {number}").fetchall() == [(f"s{number}",)]
    with cluster.connect() as someone:
        someone.execute(f"DROP TABLE {table}")
        someone.execute(f"CREATE TABLE {table} (k VARCHAR PRIMARY KEY)")
        someone.execute(f"INSERT INTO {table} VALUES ('5'), ('05')")
    with pytest.raises(secateur.ProgrammingError, match=r"(?s)column 8\).*SELECT s FROM t\d+ WHERE k = 123456\n"):
        conn.execute(f"SELECT s FROM {table} WHERE k = 123456")
    for number in range(4, 8):
        found = conn.execute(f"SELECT k FROM {table} WHERE k = {number}").fetchall()
        assert sorted(found) == ([("05",), ("5",)] if number == 5 else [])


def test_statements_are_listed_by_their_fingerprint(conn: secateur.Connection, table: str) -> None:
    for number in range(5):
        conn.execute(f"SELECT x FROM {table} WHERE k = {number} AND s <> 'secret{number}'").fetchall()
    found = conn.execute(
        "SELECT DISTINCT fingerprint, statement FROM secateur.statements WHERE starts_with(statement, ?) ORDER BY 2",
        [f"SELECT x FROM {table} "],
    ).fetchall()
    assert len({fingerprint for fingerprint, _ in found}) == 1
    assert [text for _, text in found] == [
        f"SELECT x FROM {table} WHERE k = 0 AND s <> 'secret0'",
        f"SELECT x FROM {table} WHERE k = ? AND s <> ?",
    ]


def test_texts_are_verified_as_they_stand(conn: secateur.Connection, table: str) -> None:
    conn.execute("SET pruning = verify")
    for number in range(4):
        cursor = conn.execute(f"SELECT s FROM {table} WHERE k = {number}")
        assert cursor.stats is not None
        assert (cursor.stats.plan_cached, cursor.fetchall()) == (False, [(f"s{number}",)])
        conn.execute(f"UPDATE {table} SET x = 7 WHERE k = {number}")


def test_settings_have_plans_of_their_own(conn: secateur.Connection, table: str) -> None:
    for pruning, partitions in (("on", 1), ("off", 8), ("on", 1)):
        conn.execute(f"SET pruning = {pruning}")
        for number in range(4):
            cursor = conn.execute(f"SELECT s FROM {table} WHERE k = {number}")
            assert cursor.stats is not None
            assert (cursor.stats.partitions_read, cursor.fetchall()) == (partitions, [(f"s{number}",)])


def test_over_http(cluster: Cluster, table: str) -> None:
    headers = {"Authorization": f"Bearer {cluster.token}"}
    with HttpServer(cluster.address) as server, httpx.Client(base_url=server.url, headers=headers) as http:
        known = []
        for number in range(60):  # more than there are connections
            sql = f"SELECT s, 'x' FROM {table} WHERE k = {number}"
            answer = http.post("/api/v1/statements", json={"sql": sql}).json()
            assert answer["rows"] == [[f"s{number}", "x"]]
            assert [column["name"] for column in answer["columns"]] == ["s", "'x'"]
            known.append(answer["stats"]["plan_cached"])
        assert all(known[-10:])
