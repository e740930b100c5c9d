from __future__ import annotations

import duckdb
import pytest

from secateur.partitioning.tables import told_apart


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
