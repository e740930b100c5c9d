"""``SET pruning = verify``: a statement is compared with the user's own text, run undivided by DuckDB over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import secateur
from secateur.errors import PruningMismatchError
from secateur.planner import stages
from secateur.planner.fragments import PartialFinal, split_select


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
def test_no_false_alarm(connection: secateur.Connection, sql: str) -> None:
    connection.execute(sql).fetchall()


def test_the_users_text_is_what_is_compared_with(
    connection: secateur.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_wrongly(*args: Any) -> PartialFinal:
        halves = split_select(*args)
        return replace(halves, partial=halves.partial.replace("> 4", "> 5"))

    monkeypatch.setattr(stages, "split_select", cut_wrongly)
    monkeypatch.setattr(stages, "difference", lambda *args, **named: None)
    with pytest.raises(PruningMismatchError, match="differ"):
        connection.execute("SELECT s, count(*) FROM verified WHERE a > 4 GROUP BY s").fetchall()
