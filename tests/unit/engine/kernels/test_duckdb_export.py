"""Results of the DuckDB kernel: bounded, and errors in the midst of them are what they are at their beginning."""

from __future__ import annotations

import threading

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import Cancellation, DuckDBKernel, exported
from secateur.errors import DataError, JobCancelledError, LimitExceededError

ENDLESS = "SELECT a.i + b.i AS n FROM range(1000000) AS a(i), range(1000000) AS b(i)"


def kernel(result_bytes_max: int) -> DuckDBKernel:
    return DuckDBKernel(result_bytes_max=result_bytes_max)


def test_a_result_that_no_machine_holds_is_given_up_and_the_kernel_lives() -> None:
    small = kernel(10 << 20)
    with pytest.raises(LimitExceededError, match="larger than 10,485,760 bytes; restrict the join"):
        small.run(ENDLESS, {})
    assert small.run("SELECT count(*) AS n FROM range(100000) AS a(i)", {}).to_pydict() == {"n": [100_000]}
    assert small.run("SELECT i FROM range(100000) AS a(i)", {}).num_rows == 100_000
    small.close()


@pytest.mark.parametrize(
    ("sql", "raised", "message"),
    [
        pytest.param(
            "SELECT (900000 - i)::UINTEGER AS n FROM range(1000000) AS a(i)",
            DataError,
            "^Type INT64 with value -1 can't be cast",
            id="cast",
        ),
        pytest.param(
            "SELECT 9223372036854775807 - 900000 + i AS n FROM range(1000000) AS a(i)",
            DataError,
            "^Overflow in addition",
            id="overflow",
        ),
        pytest.param(
            "SELECT CASE WHEN i = 900000 THEN error('no') END AS n FROM range(1000000) AS a(i)",
            DataError,
            "^no$",
            id="error()",
        ),
    ],
)
def test_an_error_behind_many_rows_is_the_same_error(sql: str, raised: type[Exception], message: str) -> None:
    with pytest.raises(raised, match=message):
        kernel(1 << 30).run(sql, {})


@pytest.mark.parametrize(
    "name", ["Conversion", "INTERRUPT", "Invalid Input", "Out of Memory", "Out of Range", "What nobody knows"]
)
def test_classes_are_found_by_their_names(name: str) -> None:
    class Broken:
        def to_arrow_reader(self, rows: int) -> Broken:
            return self

        def __iter__(self) -> Broken:
            return self

        def __next__(self) -> pa.RecordBatch:
            raise OSError(f"{name} Error: as it is")

    expected = {
        "Conversion": duckdb.ConversionException,
        "INTERRUPT": duckdb.InterruptException,
        "Invalid Input": duckdb.InvalidInputException,
        "Out of Memory": duckdb.OutOfMemoryException,
        "Out of Range": duckdb.OutOfRangeException,
    }.get(name, duckdb.Error)
    with pytest.raises(duckdb.Error) as caught:
        exported(Broken(), 1, None)  # type: ignore[arg-type]
    assert (type(caught.value), str(caught.value)) == (expected, f"{name} Error: as it is")


def test_a_result_can_be_stopped_while_it_is_made() -> None:
    cancellation = Cancellation()
    answers: list[BaseException] = []

    def ask() -> None:
        try:
            kernel(1 << 40).run(ENDLESS, {}, cancellation=cancellation)
        except JobCancelledError as error:
            answers.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        asking.join(0.05)
        cancellation.cancel()
    assert [type(answer) for answer in answers] == [JobCancelledError]


def test_rows_keep_their_order_and_an_empty_result_its_columns() -> None:
    answered = kernel(1 << 30).run("SELECT i, i % 2 = 0 AS even FROM range(300000) AS a(i) ORDER BY i DESC", {})
    assert answered.column("i").to_pylist() == list(range(299_999, -1, -1))
    empty = kernel(1 << 30).run("SELECT i, i % 2 = 0 AS even FROM range(10) AS a(i) WHERE i > 10", {})
    assert (empty.num_rows, empty.schema) == (0, pa.schema([("i", pa.int64()), ("even", pa.bool_())]))
