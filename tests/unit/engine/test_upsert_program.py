"""INSERT ... ON CONFLICT DO UPDATE of one row, compiled: values of the new row, and of the one that replaces another.

What it computes over the row that is there, tests/property/test_row_upserts.py compares with DuckDB.
"""

from __future__ import annotations

import pytest

from secateur.engine.kernels.arrow import ConstantExpression, ParameterExpression
from secateur.engine.sql import RowUpsert, UpsertProgram
from secateur.errors import DataError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type

BIGINT, DOUBLE = parse_type("BIGINT"), parse_type("DOUBLE")
SCHEME = PartitionScheme(hashes=(HashComponent(("k",), 4),), types=(("k", BIGINT),))
COLUMNS = (Column("x", DOUBLE), Column("k", BIGINT, nullable=False), Column("n", BIGINT))
TABLE = TableDef("t", 1, COLUMNS, ("k",), SCHEME)
K, N = ParameterExpression(1, BIGINT), ParameterExpression(2, BIGINT)
ZERO, NEGATIVE_ZERO = ConstantExpression(0.0, DOUBLE), ConstantExpression(-0.0, DOUBLE)


def test_literals_and_parameters_stand_in_the_columns_that_they_are_given_for() -> None:
    program = UpsertProgram(RowUpsert((ZERO, K, N), {"n": None, "x": ConstantExpression(2.5, DOUBLE)}), TABLE)
    assert program.inserted([7, 8]) == [[0.0], [7], [8]]
    assert program.updated([[0.0], [7], [8]], [1.5, 7, 3], [7, 8]) == [[2.5], [7], [None]]
    assert not program.replaces_row


def test_values_of_the_new_row_are_taken_in_their_canonical_form() -> None:
    program = UpsertProgram(RowUpsert((ZERO, K, N), {"n": N}), TABLE)
    assert program.updated([[0.0], [7], [80]], [1.5, 7, 3], [7, 8]) == [[1.5], [7], [80]]


def test_a_row_whose_other_columns_all_are_those_of_the_new_one_is_replaced_unread() -> None:
    assert UpsertProgram(RowUpsert((ZERO, K, N), {"n": N, "x": ZERO}), TABLE).replaces_row
    assert not UpsertProgram(RowUpsert((ZERO, K, N), {"n": N}), TABLE).replaces_row
    assert not UpsertProgram(RowUpsert((ZERO, K, N), {"n": K, "x": ZERO}), TABLE).replaces_row


def test_two_zeros_are_equal_and_not_the_same() -> None:
    program = UpsertProgram(RowUpsert((NEGATIVE_ZERO, K, N), {"n": N, "x": ZERO}), TABLE)
    assert not program.replaces_row
    assert repr(program.updated([[-0.0], [7], [8]], [1.5, 7, 3], [7, 8])) == "[[0.0], [7], [8]]"


def test_an_assigned_parameter_that_is_not_of_its_type_is_left_to_duckdb() -> None:
    program = UpsertProgram(RowUpsert((ZERO, K, None), {"n": N}), TABLE)
    with pytest.raises(DataError, match="needs a cast"):
        program.updated([[0.0], [7], [None]], [1.5, 7, 3], [7, "8"])
