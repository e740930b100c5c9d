"""The places of named types in a text, which are all those where DuckDB reads a type, and no others."""

from __future__ import annotations

import pytest

from secateur.partitioning.tables import NamedType
from secateur.partitioning.types import parse_type
from secateur.planner.text import named_types_in, tokenize

TYPES = {name: NamedType(name, parse_type("ENUM('a', 'b')")) for name in ("mood", "a mood")}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 'a'::mood, x::MOOD[], y::\"a mood\"", ["mood", "MOOD", '"a mood"']),
        ("SELECT CAST(f(x, (SELECT 1 AS mood)) AS mood), TRY_CAST([1, 2] AS mood[])", ["mood", "mood"]),
        ("SELECT mood 'a' < \"a mood\" 'b'", ["mood 'a'", "\"a mood\" 'b'"]),
        ("SELECT x::STRUCT(mood mood, b MAP(mood, INTEGER[]), c STRUCT(mood INT)[])", ["mood", "mood"]),
        ("SELECT x::DECIMAL(10, 2) AS mood, x::ENUM('mood', 'x')", []),
        ("SELECT mood, t.mood, mood.x, mood(1), 'mood', x AS mood FROM mood AS mood", []),
        ("SELECT x AS mood, 'a' AS mood ORDER BY mood", []),
        ("SELECT x::main.mood, mood::VARCHAR, 1::other", []),
        ("SELECT CAST(mood AS VARCHAR), CAST(x AS mood.y)", []),
        ("SELECT CAST(x", []),
        ("SELECT x::", []),
        ("SELECT x::STRUCT(", []),
    ],
)
def test_the_places(sql: str, found: list[str]) -> None:
    places = named_types_in(tokenize(sql), TYPES)
    assert [sql[place.start : place.end] for place in places] == found
    assert [sql[slice(*place.literal)] for place in places if place.literal] == [
        text.split()[-1] for text in found if "'" in text
    ]


def test_nothing_is_looked_for_without_types() -> None:
    assert named_types_in(tokenize("SELECT 'a'::mood"), {}) == []
