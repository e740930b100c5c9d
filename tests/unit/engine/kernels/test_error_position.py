from __future__ import annotations

import pytest

from secateur.engine.kernels.duckdb import bind_error_position

RELATIONS = {"s0": {"k": "INTEGER", "é": "VARCHAR"}, "s1": {"k": "DECIMAL(10,2)[]"}, "s2": {}}


@pytest.mark.parametrize(
    ("sql", "part", "message"),
    [
        pytest.param("SELECT nope FROM s0", "nope", 'Referenced column "nope" not found', id="a name"),
        pytest.param(
            "SELECT 'ü', \"é\" || 'ßß', nope FROM s0",
            "nope",
            'Referenced column "nope" not found',
            id="behind characters of several bytes",
        ),
        pytest.param(
            "SELECT k FROM temp.s0 AS a, s1 AS b WHERE a.k = $1", "k", "Ambiguous reference", id="beside a parameter"
        ),
        pytest.param(
            "SELECT 1 FROM s2 WHERE sum(1) > 1", "sum(1)", "cannot contain aggregates", id="a relation without columns"
        ),
    ],
)
def test_duckdb_says_where(sql: str, part: str, message: str) -> None:
    error_position = bind_error_position(sql, RELATIONS)
    assert error_position is not None
    assert sql[error_position.offset : error_position.offset + error_position.length] == part
    assert message in error_position.message


@pytest.mark.parametrize(
    "sql", ["SELECT k FROM s0", "SELECT k FROM s0 UNION SELECT 1, 2"], ids=["nothing is wrong", "it does not say where"]
)
def test_there_may_be_no_place(sql: str) -> None:
    assert bind_error_position(sql, RELATIONS) is None


def test_a_message_that_is_cut_off_inside_of_a_character() -> None:
    assert bind_error_position("SELECT json_exists(repeat('ä', 300), 'a')", {}) is None
