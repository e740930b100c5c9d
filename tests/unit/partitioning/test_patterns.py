"""The domains of patterns against DuckDB's own matching."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import DatabaseError
from secateur.partitioning.pruning import EVERYTHING, Domain, Span, starting_with, texts_like

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
