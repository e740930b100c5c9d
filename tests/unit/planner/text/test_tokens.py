"""Texts are cut where DuckDB cuts them."""

from __future__ import annotations

import duckdb
import pytest

from secateur.errors import SqlSyntaxError
from secateur.planner.text import tokenize


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT\u00a01\u3000AS\u2003a\u200b", ["SELECT", "1", "AS", "a"]),
        ("SELECT 1 /* a /* b */ ' */ -- '\r+ 1 AS a", ["SELECT", "1", "+", "1", "AS", "a"]),
        ("SELECT 1 AS a$1", ["SELECT", "1", "AS", "a$1"]),
        ("SELECT 1 AS é日😀_2", ["SELECT", "1", "AS", "é日😀_2"]),
        ("SELECT $a$ ' $b$ $a$, $$?$$", ["SELECT", " ' $b$ ", ",", "?"]),
        ("SELECT E'a\\'b', X'ab', 'it''s' AS \"a\"\"b\"", ["SELECT", "a\\'b", ",", "ab", ",", "it's", "AS", 'a"b']),
        ("SELECT .5, 1., 1_000, 1e-3", ["SELECT", ".5", ",", "1.", ",", "1_000", ",", "1e-3"]),
    ],
)
def test_a_text_that_duckdb_takes(sql: str, expected: list[str]) -> None:
    assert [token.text for token in tokenize(sql)] == expected
    duckdb.sql(sql)


@pytest.mark.parametrize("opening", ["'a", '"a', "/* /* */", "$$a"])
def test_what_does_not_end_says_where_it_begins(opening: str) -> None:
    with pytest.raises(SqlSyntaxError, match="is not closed") as caught:
        tokenize(f"SELECT {opening}")
    assert caught.value.details["column"] == 8
