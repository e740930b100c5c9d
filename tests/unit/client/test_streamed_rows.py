from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from secateur.client.dbapi import Rows
from secateur.errors import MemberLostError
from secateur.protocol import ResultColumn

COLUMNS = [ResultColumn("a", "BIGINT")]


class Parts:
    """Rows to come from a list; an exception in it is raised."""

    def __init__(self, *parts: list[int] | Exception) -> None:
        self.parts = list(parts)
        self.closed = False

    @property
    def is_done(self) -> bool:
        return not self.parts

    def next(self) -> pa.Table | None:
        if not self.parts:
            return None
        match self.parts[0]:
            case Exception() as error:
                raise error
            case part:
                del self.parts[0]
                return table(part)

    def close(self) -> None:
        self.closed = True


def table(values: list[int]) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def rows(first: list[int], *rest: list[int] | Exception) -> Rows:
    to_come: Any = Parts(*rest)
    return Rows(table(first), COLUMNS, to_come)


def values(found: list[tuple[Any, ...]] | Iterator[tuple[Any, ...]]) -> list[Any]:
    return [value for (value,) in found]


def test_rows_are_taken_across_parts() -> None:
    streamed = rows([1, 2], [3], [], [4, 5])
    assert values(streamed.take(1)) == [1]
    assert (streamed.position, streamed.num_rows) == (1, -1)
    assert values(streamed.take(3)) == [2, 3, 4]
    assert (streamed.position, streamed.num_rows) == (4, 5)
    assert values(streamed.take(9)) == [5]
    assert streamed.take(9) == []


def test_the_rest_in_every_form() -> None:
    for take in (
        lambda r: values(r.take_all()),
        lambda r: values(r.iterate()),
        lambda r: r.take_table()["a"].to_pylist(),
    ):
        streamed = rows([1, 2], [3], [4])
        assert values(streamed.take(1)) == [1]
        assert take(streamed) == [2, 3, 4]
        assert (streamed.position, streamed.num_rows) == (4, 4)
    assert [part["a"].to_pylist() for part in rows([1], [2, 3]).tables()] == [[1], [2, 3]]
    assert rows([], []).take_table().schema == table([]).schema


@pytest.mark.parametrize("taken", range(6))
def test_an_iteration_goes_on_behind_rows_that_were_taken_meanwhile(taken: int) -> None:
    streamed = rows([1, 2], [3], [4, 5, 6], [7, 8])
    found: list[Any] = []
    for row in streamed.iterate():
        found += values([row, *streamed.take(taken)])
    assert found == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_error_comes_behind_the_rows_before_it() -> None:
    streamed = rows([1], [2], MemberLostError("m2 is lost"))
    assert values(streamed.take(2)) == [1, 2]
    for _ in range(2):
        with pytest.raises(MemberLostError, match="m2"):
            streamed.take(1)


def test_closing_gives_up_the_rest() -> None:
    parts: Any = Parts([2])
    Rows(table([1]), COLUMNS, parts).close()
    assert parts.closed
