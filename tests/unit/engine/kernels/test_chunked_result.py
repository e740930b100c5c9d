"""Answers that are taken a part at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from secateur.engine.kernels import ChunkedResult, CompleteResult, Fragment, StreamedResult, open_answer
from secateur.engine.kernels.duckdb import Cancellation, DuckDBKernel
from secateur.errors import DataError, JobCancelledError, LimitExceededError, UnknownColumnError

ROWS = pa.table(
    {
        "a": pa.array(range(200_000), pa.int64()),
        "s": pa.array([None if n % 3 == 0 else "x" * 50 for n in range(200_000)]),
    }
)
KEYS = pa.table({"a": pa.array(range(100_000, 300_000), pa.int64())})


@pytest.fixture
def kernel() -> Iterator[DuckDBKernel]:
    kernel = DuckDBKernel(threads=2)
    yield kernel
    kernel.close()


def fragment(sql: str, *columns: tuple[str, str]) -> Fragment:
    relations = tuple(name for name in ("s0", "x0") if name in sql)
    return Fragment(sql, relations, columns)


def answer(
    kernel: DuckDBKernel, sql: str, *columns: tuple[str, str], cancellation: Cancellation | None = None
) -> ChunkedResult:
    return open_answer(
        fragment(sql, *columns), {"s0": ROWS, "x0": KEYS}, cancellation=cancellation, duckdb=lambda: kernel
    )


def taken(answer: ChunkedResult, bytes_wanted: int) -> list[pa.Table]:
    parts = []
    while not answer.is_done:
        parts.append(answer.take(bytes_wanted))
    return parts


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, s FROM s0 ORDER BY a DESC",
        "SELECT s0.a, s FROM s0 JOIN x0 USING (a) ORDER BY 1",
        "SELECT a::HUGEINT AS h, a % 2 = 0 AS b, [s] AS l FROM s0 ORDER BY a",
        "SELECT a, s FROM s0 WHERE a < 0",
    ],
)
@pytest.mark.parametrize("bytes_wanted", [1, 1 << 20, 1 << 40])
def test_the_parts_are_the_whole(kernel: DuckDBKernel, sql: str, bytes_wanted: int) -> None:
    columns = kernel.describe(sql, {"s0": {"a": "BIGINT", "s": "VARCHAR"}, "x0": {"a": "BIGINT"}})
    relations = {"s0": ROWS, "x0": KEYS}
    whole = kernel.run(sql, relations)
    parts = taken(answer(kernel, sql, *columns), bytes_wanted)
    assert pa.concat_tables(parts).equals(whole)
    assert max(part.nbytes for part in parts) <= bytes_wanted + (4 << 20)


def test_rows_are_made_as_they_are_taken(kernel: DuckDBKernel) -> None:
    endless = answer(
        kernel, "SELECT a.i + b.i AS n FROM range(1000000) AS a(i), range(1000000) AS b(i)", ("n", "BIGINT")
    )
    assert endless.take(1 << 20).num_rows >= 100_000
    assert (endless.is_done, endless.held_bytes) == (False, 0)
    endless.close()
    endless.close()
    assert endless.is_done
    assert endless.take(1).num_rows == 0
    assert kernel.run("SELECT 1 AS one", {}).to_pydict() == {"one": [1]}


def test_what_is_wrong_comes_with_the_part_that_it_is_in(kernel: DuckDBKernel) -> None:
    unbound = answer(kernel, "SELECT b FROM s0", ("b", "BIGINT"))
    with pytest.raises(UnknownColumnError):
        unbound.take(1)
    assert unbound.is_done
    late = answer(
        kernel,
        "SELECT CASE WHEN i = 9000000 THEN error('no') ELSE i END AS n FROM range(10000000) AS a(i)",
        ("n", "BIGINT"),
    )
    assert late.take(1).num_rows
    with pytest.raises(DataError, match=r"^no$"):
        taken(late, 1 << 20)
    assert late.is_done


def test_rows_that_are_compared_are_told_apart(kernel: DuckDBKernel) -> None:
    rows = fragment("SELECT a FROM s0 WHERE (a, 1) >= (5, 1) AND (a, 1) < (8, 0)", ("a", "BIGINT"))
    found = open_answer(rows, {"s0": ROWS}, duckdb=lambda: kernel)
    assert pa.concat_tables(taken(found, 1 << 20)).to_pydict() == {"a": [5, 6, 7]}


def test_another_thread_stops_it(kernel: DuckDBKernel) -> None:
    stop = Cancellation()
    endless = answer(
        kernel,
        "SELECT a.i + b.i AS n FROM range(1000000) AS a(i), range(1000000) AS b(i)",
        ("n", "BIGINT"),
        cancellation=stop,
    )
    assert endless.take(1).num_rows
    threading.Timer(0.05, stop.cancel).start()
    with pytest.raises(JobCancelledError):
        endless.take(1 << 40)
    assert endless.is_done


@pytest.mark.parametrize("spills", [True, False], ids=["spills", "nowhere to spill"])
def test_a_sort_beyond_the_memory_limit(tmp_path: Path, spills: bool) -> None:
    small = DuckDBKernel(memory_limit_bytes=24 << 20, threads=1, spill_directory=tmp_path if spills else None)
    sorting = open_answer(
        fragment(
            "SELECT i, md5(i::VARCHAR) AS s FROM range(1000000) AS r(i) ORDER BY s", ("i", "BIGINT"), ("s", "VARCHAR")
        ),
        {},
        duckdb=lambda: small,
    )
    if spills:
        first = sorting.take(1 << 20)
        assert first.column("s").to_pylist() == sorted(first.column("s").to_pylist())
        assert any(tmp_path.rglob("*"))
        assert first.num_rows + sum(part.num_rows for part in taken(sorting, 1 << 20)) == 1_000_000
    else:
        with pytest.raises(LimitExceededError):
            sorting.take(1 << 20)
        assert small.run("SELECT 1 AS one", {}).to_pydict() == {"one": [1]}
    small.close()


def test_an_answer_that_is_there_is_taken_in_slices() -> None:
    whole = CompleteResult(ROWS)
    first = whole.take(1 << 20)
    assert first.nbytes <= 1.1 * (1 << 20)
    assert whole.held_bytes == pytest.approx(ROWS.nbytes - first.nbytes, rel=0.05)
    assert pa.concat_tables([first, *taken(whole, 1 << 20)]).equals(ROWS)
    assert CompleteResult(ROWS.slice(0, 0)).take(1).schema.equals(ROWS.schema)


def test_a_closed_answer_of_which_nothing_was_taken_has_nothing() -> None:
    made = StreamedResult(ROWS.slice(start, 1) for start in range(3))
    made.close()
    assert made.take(1).num_rows == 0
