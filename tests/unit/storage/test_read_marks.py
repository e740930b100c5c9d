"""Marks of reads."""

from __future__ import annotations

import pytest

from secateur.storage import ReadVersions


@pytest.mark.parametrize(
    ("mark", "table_id", "changes", "expected"),
    [
        pytest.param("m", 1, 5, True, id="as it was"),
        pytest.param("m", 1, 6, False, id="changed"),
        pytest.param("m", 2, 5, False, id="another table"),
        pytest.param("n", 1, 5, False, id="another mark"),
    ],
)
def test_a_table_is_as_it_was_read(mark: str, table_id: int, changes: int, expected: bool) -> None:
    marks = ReadVersions()
    marks.note("m", 1, 5)
    assert marks.is_unchanged(mark, table_id, changes) == expected


def test_of_two_reads_under_one_mark_the_first_counts() -> None:
    marks = ReadVersions()
    marks.note("m", 1, 5)
    marks.note("m", 1, 6)
    assert (marks.is_unchanged("m", 1, 5), marks.is_unchanged("m", 1, 6)) == (True, False)


def test_the_oldest_marks_are_forgotten() -> None:
    marks = ReadVersions(marks_max=2)
    for name in "abc":
        marks.note(name, 1, 0)
    assert [marks.is_unchanged(name, 1, 0) for name in "abc"] == [False, True, True]
