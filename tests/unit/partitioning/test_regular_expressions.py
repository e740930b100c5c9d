"""The domains of regular expressions, against the texts that DuckDB matches."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.errors import DatabaseError
from secateur.partitioning.pruning import EVERYTHING, points, starting_with, texts_matched, texts_similar
from secateur.partitioning.pruning.text_sets import PatternDomain

ALPHABET = ["a", "b", "1", "_", "-", "\n", "é", "\u212a"]
TEXTS = ["", *("".join(text) for length in (1, 2, 3) for text in itertools.product(ALPHABET, repeat=length))]
TABLE = pa.table({"k": TEXTS})
PIECES = [
    *("a", "b", "1", "-", "_", "é", ".", "(", ")", "(?:", "|", "^", "$", "[", "]", "[^", "\\", "{", "}", ","),
    *("*", "+", "?", "{2}", "{0,1}", "{1,}", "{,2}", "[ab]", "[a-b1]", "[^a]", "[-a]", "[a-]", "[\\d_]", "[[:alpha:]]"),
    *("\\d", "\\w", "\\s", "\\W", "\\.", "\\-", "\\n", "\\b", "(a|b)", "(a|)", "(?i)", "\\x61", "&&", "]", "\\pL"),
]


def _matches(condition: str, pattern: str) -> set[str] | None:
    try:
        answer = default_kernel().run(f"SELECT k FROM s0 WHERE {condition}", {"s0": TABLE}, [pattern])
    except DatabaseError:
        return None
    return set(answer.column("k").to_pylist())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(one_in=2)
def test_random_expressions_hold_every_match_and_exact_ones_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    read = 0
    for _ in range(250):
        pattern = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 6)))
        if rng.random() < 0.3:
            pattern = f"^{pattern}{rng.choice(['$', ''])}"
        length_max = rng.choice([None, None, 0, 1, 2])
        for condition, texts_of in (("k SIMILAR TO $1", texts_similar), ("k ~ $1", texts_matched)):
            domain = texts_of(pattern)
            if domain is None:
                continue
            read += 1
            found = _matches(condition, pattern)
            assert found is not None, f"{pattern!r}: DuckDB refuses it, so nothing may be said"
            inside = {text for text in TEXTS if text in domain.superset}
            assert found == inside if domain.exact else found <= inside, f"{condition} with {pattern!r}"
            short = texts_of(pattern, length_max=length_max)
            assert short is not None
            assert {text for text in found if length_max is None or len(text) <= length_max} <= {
                text for text in TEXTS if text in short.superset
            }, f"{condition} with {pattern!r} and at most {length_max} characters"
    assert read > 60


@pytest.mark.parametrize("options", ["s", "m", "n", "p", "l", "il", "ci", "ic", "cl", "ims"])
def test_options_mean_what_duckdb_says(options: str) -> None:
    rng = random.Random(options)
    read = 0
    for _ in range(60):
        pattern = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 3)))
        for function, texts_of in (("regexp_full_match", texts_similar), ("regexp_matches", texts_matched)):
            for expression in (pattern, f"^{pattern}$"):
                domain = texts_of(expression, options)
                if domain is not None:
                    read += 1
                    found = _matches(f"{function}(k, $1, '{options}')", expression)
                    inside = {text for text in TEXTS if text in domain.superset}
                    assert found is not None, f"{function} with {expression!r}: DuckDB refuses it"
                    assert found == inside if domain.exact else found <= inside, f"{function} with {expression!r}"
    assert read > 40


def test_a_text_that_is_matched_literally_is_found() -> None:
    assert texts_similar("a.b", "l") == PatternDomain(points(["a.b"]), True)
    assert texts_similar("k", "li") == PatternDomain(points(["k", "K", "\u212a"]), True)


@pytest.mark.parametrize("options", ["g", "x", "i ", "C"])
def test_other_options_are_left_to_duckdb(options: str) -> None:
    assert texts_similar("a", options) is None


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        pytest.param(texts_similar("test[0-2]est"), {"test0est", "test1est", "test2est"}, id="a class"),
        pytest.param(
            texts_matched("^tes[tT]{1,2}$"), {"test", "tesT", "testt", "tesTT", "testT", "tesTt"}, id="anchors"
        ),
        pytest.param(texts_similar("(ab|c)?d"), {"abd", "cd", "d"}, id="alternatives, which may be missing"),
        pytest.param(texts_matched("^a$|^b$"), {"a", "b"}, id="each alternative has anchors of its own"),
        pytest.param(texts_similar("ab*", length_max=3), {"a", "ab", "abb"}, id="repetition ends with the length"),
        pytest.param(texts_similar(r"1\.5"), {"1.5"}, id="an escaped point"),
        pytest.param(texts_similar("a{0}"), {""}, id="no repetition"),
    ],
)
def test_expressions_with_few_matches(domain: PatternDomain | None, expected: set[str]) -> None:
    assert domain is not None
    assert domain.superset == points(expected)


@pytest.mark.parametrize("pattern", ["^abc.*", "^abc", "^abc(x|.+)", "^abc[^x]", "^ab(c.)+"])
def test_the_beginning_of_an_expression_with_infinitely_many_matches(pattern: str) -> None:
    domain = texts_matched(pattern)
    assert domain is not None
    assert domain.superset == starting_with("abc")


@pytest.mark.parametrize("pattern", ["abc", "a$", "^a|b$", ".*", "^", "[^a]b"])
def test_expressions_that_match_anywhere_bound_nothing(pattern: str) -> None:
    domain = texts_matched(pattern)
    assert domain is not None
    assert domain.superset == EVERYTHING


@pytest.mark.parametrize(
    "pattern",
    [
        *("a++", "a**", "(?i)a", r"\ba", r"\1", "a{2,1}", "a{1001}", "(a{40}){40}", "[b-a]", "[]", "a)", "(a", "a^b"),
        *("[[:digit:]]", r"\Qa\E", r"\x61", "{", "a{,2}", "]", "(^a)", "a\0", "\ud800", "(" * 5000, "a" * 5000),
    ],
)
def test_what_only_duckdb_reads(pattern: str) -> None:
    assert texts_similar(pattern) is None
    assert texts_matched(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    ["(a?){1000}", "(a|b)*(a|b)*" * 40, "[a-z]{30}", "(" * 30 + "a?" + ")*" * 30, "(a*)*" * 150, r"\w{500}\w{500}"],
)
def test_the_work_for_an_expression_is_bounded(pattern: str) -> None:
    for length_max in (None, 10**9):
        domain = texts_similar(pattern, length_max=length_max)
        assert domain is not None
        assert len(domain.superset.points) + len(domain.superset.spans) <= 4096
