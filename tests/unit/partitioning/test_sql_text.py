"""Names that are one name in a statement, and names that are told apart."""

from __future__ import annotations

import duckdb
import pytest

from secateur.partitioning.types import folded, told_apart


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "A"), ("É", "é"), ("ß", "ss"), ("\u212a", "k"), ("aÉ", "AÉ"), ("\u017f", "s"), ("_Z9", "_z9")],
)
def test_names_are_one_where_duckdb_takes_them_for_one(one: str, other: str) -> None:
    try:
        (row,) = duckdb.sql(f'SELECT "{other}" FROM (SELECT 1 AS "{one}") q').fetchall()
        is_one = row == (1,)
    except duckdb.BinderException:
        is_one = False
    assert (folded(one) == folded(other)) == is_one


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "A", "a"], ["a", "A_1", "a_2"]),
        (["a", "a_1", "a"], ["a", "a_1", "a_2"]),
        (["a", "a", "a_1"], ["a", "a_1", "a_1_1"]),
        (["É", "é", "É"], ["É", "é", "É_1"]),
    ],
)
def test_equal_names_are_told_apart_as_duckdb_does(names: list[str], apart: list[str]) -> None:
    assert list(told_apart(names)) == apart
    columns = ", ".join(f'1 AS "{name}"' for name in names)
    assert duckdb.sql(f"SELECT {columns}").df().columns.tolist() == apart
