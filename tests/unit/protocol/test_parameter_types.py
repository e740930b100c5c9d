"""Plain values and the types that DuckDB binds them with: what has one name here has one type there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import duckdb
import pytest

from secateur.protocol import classes_of, type_of

SAMPLES: Final = 600


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        yield database


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(2**31 - 1, 2**31, id="INTEGER and BIGINT"),
        pytest.param(2**63 - 1, 2**63, id="BIGINT and UBIGINT"),
        pytest.param(-(2**63), -(2**63) - 1, id="BIGINT and HUGEINT"),
        pytest.param(2**64 - 1, 2**64, id="UBIGINT and HUGEINT"),
        pytest.param(2**127 - 1, 2**127, id="HUGEINT and UHUGEINT"),
        pytest.param(Decimal("1.5"), Decimal("1.55"), id="scales"),
        pytest.param(Decimal("1.5"), Decimal("11.5"), id="digits before the point"),
        pytest.param(Decimal("1E+3"), Decimal("1"), id="a number of thousands"),
        pytest.param(Decimal("1" * 38), Decimal("1" * 39), id="a decimal that is a DOUBLE"),
        pytest.param(Decimal("1.5"), Decimal("NaN"), id="no number"),
        pytest.param(datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), id="with a zone"),
        pytest.param([1], [2**40], id="elements"),
        pytest.param([Decimal("1.5")], [Decimal("1.5"), Decimal("1.55")], id="the widest element"),
        pytest.param([1], [None], id="no element that says a type"),
        pytest.param([[1]], [[2**40]], id="elements of elements"),
        pytest.param([datetime(2024, 1, 1)], [datetime(2024, 1, 1, tzinfo=UTC)], id="elements with a zone"),
        pytest.param({"a": 1}, {"a": 2**40}, id="fields"),
        pytest.param({"a": 1}, {"b": 1}, id="names of fields"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="the order of fields"),
        pytest.param([{"a": 1}, {"b": 1}], [{"b": 1}, {"a": 1}], id="the order of fields of elements"),
        pytest.param({"key": [1], "value": [2]}, {"key": [1], "value": [2, 3]}, id="a MAP and a STRUCT"),
    ],
)
def test_values_of_one_class_and_two_types(oracle: duckdb.DuckDBPyConnection, first: Any, second: Any) -> None:
    assert typeof(oracle, first) != typeof(oracle, second)
    assert type_of(first) != type_of(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(1, -(2**31), id="integers"),
        pytest.param(Decimal("1.50"), Decimal("-9.99"), id="decimals of one scale"),
        pytest.param(Decimal("0.01"), Decimal("0.00001E+3"), id="digits that are written otherwise"),
        pytest.param([1, 2**40], [2**40, 5, 7], id="the widest of some integers"),
        pytest.param([Decimal("1.5"), Decimal("10")], [Decimal("10.5")], id="the decimal that holds all"),
        pytest.param(["a"], ["b", "c"], id="texts"),
    ],
)
def test_values_of_one_type(oracle: duckdb.DuckDBPyConnection, first: Any, second: Any) -> None:
    assert typeof(oracle, first) == typeof(oracle, second)
    assert type_of(first) == type_of(second)


def test_equal_names_are_equal_types(oracle: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(1)
    known: dict[Any, tuple[str, Any]] = {}
    for _ in range(SAMPLES):
        value = sample(rng)
        try:
            found = typeof(oracle, value)
        except duckdb.Error:  # such as a MAP in which a key comes twice
            continue
        expected, first = known.setdefault(type_of(value), (found, value))
        assert found == expected, f"{value!r} and {first!r}"
    assert len(known) > SAMPLES // 10


def test_classes_are_what_every_execution_looks_at() -> None:
    assert classes_of([1, "x"]) == classes_of([2**40, "y"])
    assert classes_of([1]) != classes_of([True])
    assert classes_of([Decimal("1.5")]) == classes_of([Decimal("1.55")])
    assert classes_of([[1]]) == classes_of([[2**40, 1]])
    assert classes_of([[1]]) != classes_of([["a"]])
    assert classes_of([{"a": 1}]) != classes_of([{"b": 1}])
    assert classes_of([[{"a": 1}]]) == classes_of([[{"a": 2}, {"a": 3}]])
    assert classes_of({"a": 1, "b": "x"}) == classes_of({"b": "y", "a": 2})
    assert classes_of({"a": 1}) != classes_of({"b": 1})


def typeof(oracle: duckdb.DuckDBPyConnection, value: Any) -> str:
    ((found,),) = oracle.execute("SELECT typeof($1)", [value]).fetchall()
    return str(found)


def sample(rng: random.Random, depth: int = 0) -> Any:
    """A value of any type, nested ones included."""
    kind = rng.randrange(8 if depth == 3 else 12)
    match kind:
        case 0 | 1:
            return rng.choice([1, -1]) * rng.randrange(2 ** rng.choice([3, 31, 32, 63, 64, 65, 127, 128]))
        case 2 | 3:
            digits = tuple(rng.randrange(10) for _ in range(rng.choice([1, 2, 5, 20, 38, 39])))
            return Decimal((rng.randrange(2), digits, rng.choice([0, -1, -2, -5, -37, -38, 1, 5, 30])))
        case 4 | 5:
            return rng.choice([datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)])
        case 6 | 7:
            return rng.choice(
                [None, True, 1.5, "x", b"x", date(2024, 1, 1), time(1), timedelta(1), UUID(int=5), Decimal("NaN")]
            )
        case 8:
            return [sample(rng, depth + 1) for _ in range(rng.randrange(4))]
        case 9 | 10:
            return [Decimal(f"{rng.randrange(10**6)}E-{rng.randrange(5)}") for _ in range(rng.randrange(6))]
        case _:
            names = rng.sample(["a", "b", "key", "value"], rng.randrange(1, 4))
            return {name: sample(rng, depth + 1) for name in names}
