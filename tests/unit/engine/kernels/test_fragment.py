from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from secateur.engine.kernels import Fragment, KernelName, run, run_with
from secateur.engine.kernels.arrow import (
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ParameterExpression,
    ScalarFunction,
)
from secateur.errors import ParameterError
from secateur.partitioning.types import SqlType, TypeKind, parse_type
from secateur.protocol import decode, encode

INTEGER = SqlType(TypeKind.INTEGER)
TABLE = pa.table({"v": pa.array([1, 2, 3, None], pa.int32())})
EQUALS = ArrowFragment(
    outputs=(("x", ColumnExpression("v", INTEGER)),),
    where=CallExpression(
        ScalarFunction.EQUAL,
        (ColumnExpression("v", INTEGER), ParameterExpression(1, INTEGER)),
        SqlType(TypeKind.BOOLEAN),
    ),
)
SQL = "SELECT v AS x FROM s0 WHERE v = $1"
BOTH = Fragment.over(SQL, {"s0": {"v": INTEGER}}, [("x", "INTEGER")], EQUALS)
DUCKDB_ONLY = Fragment.over(SQL, {"s0": {"v": INTEGER}}, [("x", "INTEGER")])


def test_over_finds_the_columns_that_need_a_cast() -> None:
    schemas = {
        "p0": {"h": parse_type("HUGEINT"), "d": parse_type("DECIMAL(38,0)")},
        "p1": {"e": "ENUM('a')", "v": "INTEGER"},
        "p2": {"v": "DATE"},
    }
    fragment = Fragment.over("SELECT 1 AS x", schemas, [("x", "INTEGER")])
    assert fragment.relations == ("p0", "p1", "p2")
    assert fragment.casts == (("p0", (("h", "HUGEINT"),)), ("p1", (("e", "ENUM('a')"),)))


@pytest.mark.parametrize(
    "fragment",
    [BOTH, DUCKDB_ONLY, Fragment.over("SELECT h FROM s0", {"s0": {"h": "HUGEINT"}}, [("h", "HUGEINT")])],
    ids=["both", "duckdb", "casts"],
)
def test_a_fragment_survives_the_wire(fragment: Fragment) -> None:
    assert decode(encode(fragment), Fragment) == fragment


def test_the_schema_is_that_of_an_answer() -> None:
    columns = [
        ("a", "UUID"),
        ("b", "HUGEINT"),
        ("c", "STRUCT(x BOOLEAN)"),
        ("d", "ENUM('q')"),
        ("a", "TIMESTAMP WITH TIME ZONE"),
    ]
    sql = "SELECT uuid(), CAST(1 AS HUGEINT), {'x': true}, CAST('q' AS ENUM ('q')), now()"
    fragment = Fragment.over(sql, {}, columns)
    assert run(fragment, {}).schema == fragment.schema


def test_arrow_answers_where_it_can() -> None:
    table, kernel = run_with(BOTH, {"s0": TABLE}, [2])
    assert (table.to_pylist(), kernel) == ([{"x": 2}], KernelName.ARROW)


@pytest.mark.parametrize("value", [2.0, Decimal(2), "2"], ids=repr)
def test_a_value_that_is_not_of_the_columns_type_goes_to_duckdb(value: object) -> None:
    table, kernel = run_with(BOTH, {"s0": TABLE}, [value])
    assert (table.to_pylist(), kernel) == ([{"x": 2}], KernelName.DUCKDB)


def test_the_kernel_may_be_asked_for() -> None:
    assert run_with(BOTH, {"s0": TABLE}, [2], kernel=KernelName.DUCKDB)[1] is KernelName.DUCKDB
    assert run_with(DUCKDB_ONLY, {"s0": TABLE}, [2], kernel=KernelName.ARROW)[1] is KernelName.DUCKDB


def test_the_result_is_the_same_either_way() -> None:
    assert run(BOTH, {"s0": TABLE}, [3]).equals(run(DUCKDB_ONLY, {"s0": TABLE}, [3]))


def test_a_missing_parameter_is_an_error_either_way() -> None:
    for fragment in (BOTH, DUCKDB_ONLY):
        with pytest.raises(ParameterError, match=r"uses \$1, but 0 parameters"):
            run(fragment, {"s0": TABLE})
