"""Bounds on one row value, which DuckDB's optimizer must not make a BETWEEN."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import DuckDBKernel, rows_told_apart
from secateur.errors import DataError

T = pa.table({"a": [1, 1, 1, 2, None], "b": [1, 2, None, 1, 5]})


def serialized(sql: str) -> str:
    with duckdb.connect() as connection:
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
        return str(text)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT 'é' FROM t WHERE (a, b) >= ($1, 1) AND row(a, b) < (1, (3))",
            "SELECT 'é' FROM t WHERE (a, b, 1) >= ($1, 1, 1) AND row(a, b, 0) < (1, (3), 0)",
        ),
        (
            "SELECT a FROM t WHERE (a, b) between (1, $1) AND row(2, 1) AND (a, b) NOT BETWEEN (1, 1) AND (1, (1))",
            (
                "SELECT a FROM t WHERE (((a, b, 2) >= (1, $1, 2) AND (a, b, 3) <= row(2, 1, 3)))"
                " AND (NOT ((a, b, 0) >= (1, 1, 0) AND (a, b, 1) <= (1, (1), 1)))"
            ),
        ),
        ("SELECT a FROM t WHERE (a, b) >= (1, 1) AND (a, b) = (1, 1)", None),
        ("SELECT a FROM t WHERE a >= 1 AND a < 3", None),
        ("SELECT a FROM t WHERE {'x': a} >= {'x': 1} AND {'x': a} < {'x': 3}", None),
    ],
    ids=["rows", "between", "one", "values", "structs"],
)
def test_text(sql: str, expected: str | None) -> None:
    assert rows_told_apart(sql, serialized(sql)) == expected


@pytest.fixture
def kernel() -> Any:
    kernel = DuckDBKernel(threads=1)
    yield kernel
    kernel.close()


@pytest.mark.parametrize("params", [[1, 1, 1, 3], [1, 2, 2, 1], [0, 0, 9, 9]], ids=str)
def test_the_kernel_answers(kernel: DuckDBKernel, params: list[int]) -> None:
    sql = "SELECT a, b, (a, b) < (2, 0) FROM s0 WHERE (a, b) >= ($1, $2) AND (a, b) < ($3, $4)"
    low, high = tuple(params[:2]), tuple(params[2:])
    rows = [(1, 1), (1, 2), (2, 1)]
    for _ in range(2):
        found = kernel.run(sql, {"s0": T}, params)
        present = set(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))
        assert found.column_names == ["a", "b", '("row"(a, b) < "row"(2, 0))']
        assert [key for key in rows if key in present] == [key for key in rows if low <= key < high]


@pytest.mark.parametrize("negated", ["", "NOT "])
@pytest.mark.parametrize("params", [[1, 1, 1, 3], [1, 2, 2, 1], [0, 0, 9, 9]], ids=str)
def test_the_kernel_answers_between(kernel: DuckDBKernel, params: list[int], negated: str) -> None:
    sql = f"SELECT a, b FROM s0 WHERE (a, b) {negated}BETWEEN ($1, $2) AND ($3, $4) AND a < 7"
    with duckdb.connect() as oracle:
        oracle.execute("PRAGMA disable_optimizer")
        oracle.register("s0", T)
        expected = oracle.execute(sql, params).fetchall()
    found = kernel.run(sql, {"s0": T}, params)
    assert list(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)) == expected


def test_null_is_the_greatest_field_as_without_the_optimizer(kernel: DuckDBKernel) -> None:
    sql = "SELECT count(*) FROM s0 WHERE (a, b) >= (1, 2) AND (a, b) <= (NULL, 9)"
    with duckdb.connect() as plain:
        plain.register("s0", T)
        plain.execute("SET disabled_optimizers = 'filter_pushdown'")
        expected = plain.execute(sql).fetchall()
    assert kernel.run(sql, {"s0": T}).to_pylist() == [{"count_star()": expected[0][0]}]


def test_what_cannot_be_told_apart_is_duckdbs_answer_or_its_error(kernel: DuckDBKernel) -> None:
    sql = "SELECT a FROM (SELECT a, (a, b) AS r FROM s0) WHERE r BETWEEN (1, 1) AND (1, 3)"
    if duckdb.__version__ == "2.0.0":
        with pytest.raises(DataError, match="Invalid type for BETWEEN"):
            kernel.run(sql, {"s0": T})
    else:
        assert kernel.run(sql, {"s0": T}).to_pylist() == [{"a": 1}, {"a": 1}]
