from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.sql import RowChanges
from secateur.errors import NullKeyError, ProgrammingError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import DuplicateMatchPolicy

TABLE = TableDef(
    "t",
    1,
    (
        Column("v", parse_type("INTEGER")),
        Column("k", parse_type("BIGINT"), nullable=False),
        Column("j", parse_type("VARCHAR"), nullable=False),
    ),
    ("k", "j"),
    PartitionScheme(),
)


def found_rows(*lines: tuple[Any, ...]) -> pa.Table:
    """Lines of action, old k, old j, v, k, j."""
    columns = list(zip(*lines, strict=True)) or [[]] * 6
    types = [pa.string(), pa.int64(), pa.string(), pa.int32(), pa.int64(), pa.string()]
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)],
        names=["action", "o0", "o1", "v", "k", "j"],
    )


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("lines", "removed", "added", "replaced"),
    [
        pytest.param([("UPDATE", 1, "a", 5, 1, "a")], [], [], [(5, 1, "a")], id="an update"),
        pytest.param([("UPDATE", 1, "a", 5, 2, "a")], [(1, "a")], [(5, 2, "a")], [], id="to another key"),
        pytest.param(
            [("UPDATE", 1, "a", 5, 1, "b")], [(1, "a")], [(5, 1, "b")], [], id="to another second column of the key"
        ),
        pytest.param(
            [("DELETE", 1, "a", None, None, None)], [(1, "a")], [], [], id="a deletion, whose row was not read"
        ),
        pytest.param([("INSERT", None, None, 5, 1, "a")], [], [(5, 1, "a")], [], id="an insertion"),
        pytest.param([(None, 1, "a", 5, 1, "a")], [], [], [], id="no action"),
        pytest.param([], [], [], [], id="nothing"),
        pytest.param(
            [
                ("INSERT", None, None, 0, 1, "a"),
                ("DELETE", 1, "a", 9, 1, "a"),
                ("INSERT", None, None, 0, 1, "a"),
                ("UPDATE", 3, "c", 1, 3, "c"),
            ],
            [(1, "a")],
            [(0, 1, "a"), (0, 1, "a")],
            [(1, 3, "c")],
            id="all at once; equal insertions are for the table to refuse",
        ),
    ],
)
def test_row_changes_are_sorted_out(
    lines: list[Any], removed: list[Any], added: list[Any], replaced: list[Any]
) -> None:
    found = RowChanges.of(found_rows(*lines), TABLE, DuplicateMatchPolicy.REFUSED)
    assert (tuples(found.removed), tuples(found.added), tuples(found.replaced)) == (removed, added, replaced)
    assert len(found.actions) == found.rows.num_rows == sum(line[0] is not None for line in lines)


def test_of_several_changes_of_a_row_the_first_counts() -> None:
    lines = [
        ("UPDATE", 2, "b", 1, 2, "b"),
        ("UPDATE", 1, "a", 1, 1, "a"),
        ("UPDATE", 1, "a", 2, 1, "a"),
        ("UPDATE", 1, "b", 3, 1, "b"),
    ]
    found = RowChanges.of(found_rows(*lines), TABLE, DuplicateMatchPolicy.FIRST)
    assert tuples(found.replaced) == [(1, 2, "b"), (1, 1, "a"), (3, 1, "b")]
    assert found.actions.to_pylist() == ["UPDATE"] * 3


def test_several_changes_of_a_row_may_be_refused() -> None:
    with pytest.raises(ProgrammingError, match="change a row more than once"):
        RowChanges.of(
            found_rows(("UPDATE", 1, "a", 1, 1, "a"), ("DELETE", 1, "a", None, None, None)),
            TABLE,
            DuplicateMatchPolicy.REFUSED,
        )


@pytest.mark.parametrize(("old", "new"), [(math.nan, math.nan), (math.nan, -math.nan), (0.0, -0.0)])
def test_equal_floats_are_one_key(old: float, new: float) -> None:
    """ON CONFLICT DO UPDATE of a row whose key has NaN was an error: Arrow's NaN differs from itself."""
    table = TableDef("t", 1, (Column("k", parse_type("DOUBLE"), nullable=False),), ("k",), PartitionScheme())
    found = pa.table({"action": ["UPDATE"], "o0": pa.array([old]), "k": pa.array([new])})
    changes = RowChanges.of(found, table, DuplicateMatchPolicy.FIRST)
    assert (changes.removed.num_rows, changes.added.num_rows, changes.replaced.num_rows) == (0, 0, 1)


def test_rows_that_the_table_cannot_hold() -> None:
    with pytest.raises(NullKeyError, match="column j is NOT NULL"):
        RowChanges.of(found_rows(("INSERT", None, None, 5, 1, None)), TABLE, DuplicateMatchPolicy.FIRST)


def test_the_rows_of_a_change_in_one_partition() -> None:
    lines = [("INSERT", None, None, 5, 1, "a"), ("UPDATE", 2, "b", 7, 2, "b"), ("INSERT", None, None, 6, 1, "a")]
    assert tuples(RowChanges.of(found_rows(*lines), TABLE, DuplicateMatchPolicy.FIRST).resulting(TABLE)) == [
        (7, 2, "b"),
        (5, 1, "a"),
    ]
    with pytest.raises(ProgrammingError, match="rows go away"):
        RowChanges.of(found_rows(("DELETE", 2, "b", 7, 2, "b")), TABLE, DuplicateMatchPolicy.FIRST).resulting(TABLE)


def test_some_of_the_insertions_are_kept_in_their_order() -> None:
    lines = [("INSERT", None, None, v, v, "a") for v in range(4)]
    changes = RowChanges.of(found_rows(*lines), TABLE, DuplicateMatchPolicy.FIRST)
    kept = changes.only(pa.array([1, 3]))
    assert tuples(kept.added) == tuples(kept.rows) == [(1, 1, "a"), (3, 3, "a")]
    assert kept.actions.to_pylist() == ["INSERT", "INSERT"]
    assert (kept.removed.num_rows, kept.replaced.num_rows) == (0, 0)
    assert changes.only(pa.array([], pa.int64())).rows.num_rows == 0
