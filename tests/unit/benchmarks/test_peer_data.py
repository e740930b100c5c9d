"""Values and answers of the suite of peers."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import pytest

from benchmarks.peers.data import Answers, WrongAnswerError, same_rows, values_of, write_tables
from benchmarks.peers.statements import STATEMENTS, Statement, statement_named, with_dates

ROWS = 2_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return write_tables(tmp_path_factory.mktemp("data"), ROWS)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.name)
def test_values_bind_and_find_something(statement: Statement, tables: dict[str, Any]) -> None:
    values = values_of(statement, ROWS, 20, seed=5)
    assert values == values_of(statement, ROWS, 20, seed=5)
    assert all(len(value) == statement.sql.count("?") for value in values)
    assert all(rows for rows in Answers(tables).expected(statement, values))


def test_csv_has_the_same_rows(tmp_path: Path) -> None:
    tables = write_tables(tmp_path, ROWS)
    read = csv.read_csv(tmp_path / "orders.csv", csv.ReadOptions(column_names=tables["orders"].column_names))
    assert read.cast(tables["orders"].schema).equals(tables["orders"])


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        pytest.param([[1, "a"], [2, "b"]], [(2, "b"), (1, "a")], True, id="in another order"),
        pytest.param(
            [[1.0, "2024-01-02"]], [(Decimal(1), date(2024, 1, 2))], True, id="other types of the same values"
        ),
        pytest.param([[1]], [(1,), (1,)], False, id="a row is missing that is there twice"),
        pytest.param([[None]], [(0,)], False, id="NULL is not zero"),
        pytest.param([["1"]], [(1,)], False, id="text is not a number"),
        pytest.param([], [], True, id="no rows"),
    ],
)
def test_same_rows(found: list[list[Any]], expected: list[tuple[Any, ...]], same: bool) -> None:
    assert same_rows(found, expected) is same


def test_a_wrong_answer_names_the_peer_and_the_values(tables: dict[str, Any]) -> None:
    statement = statement_named("count and sum of a customer")
    answers = Answers(tables)
    values = [[3], [4]]
    right = answers.expected(statement, values)
    answers.compare("Peer, Python", statement, values, right)
    with pytest.raises(WrongAnswerError, match=r"Peer, Python: count and sum of a customer of \[4\] gave"):
        answers.compare("Peer, Python", statement, values, [right[0], [[99, 1]]])


def test_dates_are_made_where_the_statement_has_days() -> None:
    statement = statement_named("key and date range")
    assert with_dates(statement, [1, "2024-01-01", "2024-01-30"], date.fromisoformat) == [
        1,
        date(2024, 1, 1),
        date(2024, 1, 30),
    ]
