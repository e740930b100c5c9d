"""Which texts are JSON: exactly those that DuckDB casts, and what is made of Python values."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import SqlType, TypeKind, cast_column, parse_type
from secateur.partitioning.types.coerce import coerce

JSON = SqlType(TypeKind.JSON)
PIECES = [
    *'{}[],:"-\\ \n\t\x0b\x00é',
    *('"a"', '"a":', '"\\u12aF"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\udc00"', '"\\uD83D\\uDC0"', '"\\U0041"'),
    *("NaN", "-nan", "inf", "-Infinity", "INFINITY", "Infinit", "true", "True", "null", "0", "01", "1.5", "1.", "1e5"),
    *("1E", "1e+7", "-0", '"é"', '"\\x"', '"\\/\\n"', "e", ".5", "+1", "\ufeff", "1e9999", '"\\u0000"', '"\t"', "//"),
]


def written(chance: random.Random, depth: int = 0) -> str:
    way = chance.random()
    if depth > 4 or way < 0.4:
        return chance.choice(["1", '"x"', "null", "NaN", "-inf", "1.5e3", "true", '"\\u00e9"'])
    comma = "," if chance.random() < 0.2 else ""
    if way < 0.7:
        return f"[{','.join(written(chance, depth + 1) for _ in range(chance.randint(0, 3)))}{comma}]"
    members = [f'"{at}":{written(chance, depth + 1)}' for at in range(chance.randint(0, 3))]
    return f"{{{','.join(members)}{comma}}}"


def spoiled(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(["", chance.choice(PIECES)]) + text[at + chance.randint(0, 1) :]


def is_taken(text: str) -> bool:
    try:
        return bool(coerce(text, JSON) == text)
    except DataError:
        return False


def test_the_texts_are_those_that_duckdb_casts() -> None:
    chance = random.Random(7)
    texts = ["".join(chance.choice(PIECES) for _ in range(chance.randint(1, 5))) for _ in range(5000)]
    whole = [written(chance) for _ in range(5000)]
    texts += [*whole, *(spoiled(chance, text) for text in whole)]
    rows = pa.table({"t": texts})  # noqa: F841 - DuckDB reads it
    wanted = [row for (row,) in duckdb.sql("SELECT try_cast(t AS JSON) IS NOT NULL FROM rows").fetchall()]
    assert [text for text, is_json in zip(texts, wanted, strict=True) if is_taken(text) != is_json] == []
    assert 3000 < sum(wanted) < 12_000


@pytest.mark.parametrize("depth", [1, 1000, 100_000])
def test_a_text_may_be_nested_as_deeply_as_duckdb_takes_it(depth: int) -> None:
    assert is_taken("[" * depth + "]" * depth)
    assert not is_taken("[" * depth + "]" * (depth - 1))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "x", None, {"b": 1.5}]}, '{"a":[1,"x",null,{"b":1.5}]}'),
        ([True, 2**70, "é\n"], '[true,1180591620717411303424,"é\\n"]'),
        ((1, ()), "[1,[]]"),
        (5, "5"),
        (False, "false"),
        (1e22, "1e+22"),
        (' {"a" : 1}', ' {"a" : 1}'),
    ],
)
def test_a_value_becomes_its_text(value: Any, text: str) -> None:
    assert coerce(value, JSON) == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": float("nan")}, "it has nan, which is no number of JSON"),
        (float("inf"), "it has inf"),
        ({"a": [Decimal("1.5")]}, "it has a Decimal, which JSON does not have"),
        ([date(2024, 1, 1)], "it has a date"),
        ({1: 2}, "a key of it is 1"),
        (b"{}", "it has a bytes"),
        ("{bad", "at character 2 there is 'bad', where a key or '}' is expected"),
        ('"\ud800"', "surrogates"),
        ([["\ud800"]], "surrogates"),
    ],
)
def test_what_has_no_text_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(DataError, match=r"^column j: ") as caught:
        coerce(value, JSON, column="j")
    assert reason in caught.value.message
    assert caught.value.details == {"column": "j", "type": "JSON"}


def test_a_value_inside_of_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(DataError, match="inside of itself"):
        coerce(value, JSON)


@pytest.mark.parametrize(
    ("column", "type_", "row"),
    [
        (pa.chunked_array([["{}"], [None, "[1]"], ["1", "{"]]), "JSON", 5),
        (pa.array(["{}", "x"], pa.json_()), "JSON", 2),
        (pa.array(["{}", "x"]).dictionary_encode(), "JSON", 2),
        (pa.array([["1"], ["1", "{"]]), "JSON[]", 2),
        (pa.array([{"a": "x", "b": 1}]), "STRUCT(a JSON, b BIGINT)", 1),
    ],
)
def test_a_column_names_the_first_row_that_is_no_json(column: Any, type_: str, row: int) -> None:
    with pytest.raises(DataError, match=rf"^column j, row {row}: .* it is no JSON") as caught:
        cast_column(column, parse_type(type_), name="j")
    assert caught.value.details["row"] == row


def test_columns_of_other_types() -> None:
    assert cast_column(pa.array([1, None, 3]), JSON, name="j").to_pylist() == ["1", None, "3"]
    assert cast_column(pa.array([True]), JSON, name="j").to_pylist() == ["true"]
    with pytest.raises(DataError, match="not converted to JSON automatically"):  # missing fields would become null
        cast_column(pa.array([{"a": 1}]), JSON, name="j")
