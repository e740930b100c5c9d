"""Names that are one name in a statement."""

from __future__ import annotations

import duckdb
import pytest

from secateur.partitioning.tables import folded


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
