"""The domains of patterns, against the texts that DuckDB matches."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import DatabaseError
from secateur.partitioning.pruning import (
    EVERYTHING,
    Domain,
    Span,
    points,
    starting_with,
    texts_globbed,
    texts_like,
    texts_like_in_any_case,
)
from secateur.partitioning.pruning.text_sets import PatternDomain

CHARACTERS = ["a", "b", "%", "_", "!", "é", "\ud7ff", "\ue000", "\U0010ffff", "\x7f", "\x80"]
TEXTS = [
    "",
    *("".join(text) for length in (1, 2) for text in itertools.product(CHARACTERS, repeat=length)),
    "aab",
    "a%b",
    "\U0010ffff\U0010ffff\U0010ffff",
]


def _found(condition: str, params: list[str]) -> set[str] | None:
    try:
        answer = default_kernel().run(f"SELECT k FROM s0 WHERE {condition}", {"s0": pa.table({"k": TEXTS})}, params)
    except DatabaseError:
        return None
    return set(answer.column("k").to_pylist())


@pytest.mark.parametrize("escape", ["", "!", "%", "é"])
def test_patterns_hold_every_match_and_exact_ones_nothing_else(escape: str) -> None:
    for pattern in TEXTS:
        liked = texts_like(pattern, escape)
        if liked is None:
            continue
        found = _found("k LIKE $1 ESCAPE $2", [pattern, escape])
        assert found is not None, f"{pattern!r}: DuckDB refuses, so nothing may be said"
        inside = {text for text in TEXTS if text in liked.superset}
        assert found == inside if liked.exact else found <= inside, pattern


@pytest.mark.parametrize("escape", ["", "!"])
def test_patterns_in_any_case_hold_every_match(escape: str) -> None:
    texts = [
        "".join(text) for length in (1, 2) for text in itertools.product("kKiI\u0130\u212ab%_!\u00e9", repeat=length)
    ]
    table = pa.table({"k": texts})
    for pattern in texts:
        liked = texts_like_in_any_case(pattern, escape)
        if liked is None:
            continue
        answer = default_kernel().run("SELECT k FROM s0 WHERE k ILIKE $1 ESCAPE $2", {"s0": table}, [pattern, escape])
        found = set(answer.column("k").to_pylist())
        inside = {text for text in texts if text in liked.superset}
        assert found == inside if liked.exact else found <= inside, pattern


def test_the_characters_that_are_a_letter_in_any_case_are_those_that_duckdb_finds() -> None:
    sql = (
        "SELECT k, p FROM (SELECT chr(n::INTEGER) AS k FROM range(1, 1114112) AS r(n) WHERE n NOT BETWEEN 55296 AND"
        " 57343) AS t, (SELECT chr(n::INTEGER) AS p FROM range(97, 123) AS r(n)) AS u WHERE k ILIKE p"
    )
    found: dict[str, set[str]] = {}
    for row in default_kernel().run(sql, {}).to_pylist():
        found.setdefault(row["p"], set()).add(row["k"])
    assert len(found) == 26
    for letter, characters in found.items():
        liked = texts_like_in_any_case(letter)
        assert liked is not None
        assert liked.superset == points(characters)


def test_globs_hold_every_match() -> None:
    characters = ["a", "b", "*", "?", "[", "]", "-", "!", "\\", "\u00e9"]
    texts = ["", *("".join(text) for length in (1, 2) for text in itertools.product(characters, repeat=length))]
    patterns = [
        *texts,
        *("[" + "".join(text) + "]" for text in itertools.product(characters, repeat=3)),
        "a[a-c]?",
        "[ab]",
    ]
    table = pa.table({"k": texts})
    pairs = default_kernel().run(
        "SELECT p.k AS p, s0.k FROM s0, p WHERE s0.k GLOB p.k", {"s0": table, "p": pa.table({"k": patterns})}
    )
    matches: dict[str, set[str]] = {}
    for row in pairs.to_pylist():
        matches.setdefault(row["p"], set()).add(row["k"])
    for pattern in patterns:
        globbed = texts_globbed(pattern)
        assert globbed is not None
        found, inside = matches.get(pattern, set()), {text for text in texts if text in globbed.superset}
        assert found == inside if globbed.exact else found <= inside, pattern


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        pytest.param(texts_globbed("test[0-2]"), {"test0", "test1", "test2"}, id="a class of a glob"),
        pytest.param(texts_like_in_any_case("a1"), {"a1", "A1"}, id="a letter in either case"),
        pytest.param(texts_like("abc%", length_max=3), {"abc"}, id="there is no room for more than the prefix"),
        pytest.param(texts_like("abcd%", length_max=3), set(), id="nor for the prefix"),
        pytest.param(texts_like("a_c%", length_max=1), set(), id="nor for what follows a wildcard"),
    ],
)
def test_patterns_with_few_matches(domain: PatternDomain | None, expected: set[str]) -> None:
    assert domain is not None
    assert domain.superset == points(expected)


def test_a_pattern_with_many_matches_is_bounded_by_the_beginnings_of_them() -> None:
    liked = texts_like_in_any_case("abcdefghijklmnopqrstuvwxyz")
    assert liked is not None
    assert not liked.exact
    assert 1 < len(liked.superset.spans) <= 64
    assert "ABCDEFGHIJKLMNOPQRSTUVWXYZ" in liked.superset


def test_prefixes_are_what_duckdb_finds() -> None:
    for prefix in TEXTS:
        domain = starting_with(prefix)
        assert domain is not None
        assert _found("starts_with(k, $1)", [prefix]) == {text for text in TEXTS if text in domain}


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        pytest.param("abc", Span("abc", "abd", upper_closed=False), id="the last character moves on"),
        pytest.param("a\U0010ffff", Span("a\U0010ffff", "b", upper_closed=False), id="a last code point carries over"),
        pytest.param("\U0010ffff", Span("\U0010ffff", None), id="there is nothing behind the last code point"),
        pytest.param("\ud7ff", Span("\ud7ff", "\ue000", upper_closed=False), id="surrogates are no characters"),
    ],
)
def test_the_text_behind_a_prefix(prefix: str, expected: Span) -> None:
    assert starting_with(prefix) == Domain(spans=(expected,))


@pytest.mark.parametrize(
    ("pattern", "escape"),
    [
        pytest.param("a!", "!", id="a pattern that ends with the escape character"),
        pytest.param("a%", "!!", id="an escape of two characters"),
        pytest.param("a%", "é", id="an escape of two bytes"),
        pytest.param("a\0%", "", id="a NUL, which is how no escape is written inside DuckDB"),
        pytest.param("\ud800%", "", id="a lone surrogate"),
    ],
)
def test_what_only_duckdb_knows(pattern: str, escape: str) -> None:
    assert texts_like(pattern, escape) is None


def test_a_pattern_of_wildcards_is_everything() -> None:
    liked = texts_like("%%")
    assert liked is not None
    assert (liked.superset, liked.exact) == (EVERYTHING, True)
