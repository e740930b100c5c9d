"""What is evaluated before the partitions of a statement are selected costs little, whatever its parameters are."""

from __future__ import annotations

import time

import pytest

from secateur.duckdb_expressions import complete, value_of
from secateur.partitioning.pruning import Evaluated


def values(sql: str, params: list[object], count: int = 1) -> list[object]:
    used = tuple(range(len(params)))
    expressions = [Evaluated(f"{sql} + {n}", sql, used, None, len(params) + n) for n in range(count)]
    return complete(params, expressions)[len(params) :]


def test_a_short_expression_has_its_value() -> None:
    assert values("levenshtein($1, $2)", ["cat", "cart"]) == [[1]]
    assert values("length($1 || 'x')", ["ab"], count=100) == [[3 + n] for n in range(100)]
    assert value_of("length(upper('abc'))") == (3,)


def test_a_long_key_has_its_value() -> None:
    assert values("length(upper($1))", ["x" * 2000]) == [[2000]]


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        pytest.param("levenshtein($1, $2)", ["a" * 4000, "b" * 4000], id="long parameters"),
        pytest.param("levenshtein($1 || $1 || $1 || $1 || $1, $1)", ["a" * 1500], id="a parameter that is repeated"),
        pytest.param(" + ".join(["levenshtein($1, $2)"] * 400), ["a" * 300, "b" * 300], id="many calls"),
        pytest.param(f"levenshtein('{'a' * 5000}', $1)", ["b"], id="long literal"),
    ],
)
def test_an_expensive_expression_has_none_and_is_not_evaluated(sql: str, params: list[object]) -> None:
    started_s = time.process_time()
    assert values(sql, params) == [[]]
    assert time.process_time() - started_s < 1


def test_expressions_share_what_an_evaluation_may_cost() -> None:
    found = values("levenshtein($1, $2)", ["a" * 1000, "b" * 1000], count=30)
    known = [each for each in found if each]
    assert known == [[1000 + n] for n in range(len(known))], "the first ones are known"
    assert 0 < len(known) < 30


def test_an_expensive_constant_is_unknown() -> None:
    assert value_of(f"levenshtein('{'a' * 5000}', 'b')") == ()
