from __future__ import annotations

import datetime as dt
import threading
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels.duckdb import Cancellation, DuckDBKernel
from secateur.engine.kernels.duckdb import kernel as module
from secateur.engine.kernels.duckdb import slot as duckdb_slot
from secateur.errors import (
    DataError,
    Error,
    InterfaceError,
    InternalError,
    JobCancelledError,
    LimitExceededError,
    ParameterError,
    ProgrammingError,
    SqlSyntaxError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.partitioning.types import parse_type

S0 = pa.table({"k": ["a", "b", None], "v": pa.array([1, 2, 3], pa.int32())})


@pytest.fixture(scope="module")
def kernel() -> Iterator[DuckDBKernel]:
    kernel = DuckDBKernel(threads=2)
    yield kernel
    kernel.close()


PARAMETERS = [
    (5, "INTEGER", pa.int32()),
    (-(2**40), "BIGINT", pa.int64()),
    (10**30, "HUGEINT", pa.decimal128(38, 0)),
    (1.5, "DOUBLE", pa.float64()),
    (True, "BOOLEAN", pa.bool_()),
    ("é", "VARCHAR", pa.string()),
    (b"\x00\xff", "BLOB", pa.binary()),
    (None, "INTEGER", pa.int32()),
    (dt.date(2024, 2, 29), "DATE", pa.date32()),
    (dt.time(1, 2, 3, 4), "TIME", pa.time64("us")),
    (dt.datetime(2024, 2, 29, 1, 2, 3, 4), "TIMESTAMP", pa.timestamp("us")),
    (dt.datetime(2024, 2, 29, tzinfo=dt.UTC), "TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
    (Decimal("-1.50"), "DECIMAL(3,2)", pa.decimal128(3, 2)),
    (uuid.UUID(int=7), "UUID", pa.uuid()),
    ([1, None], "INTEGER[]", pa.list_(pa.int32())),
]


@pytest.mark.parametrize(
    ("value", "type_text", "arrow"), PARAMETERS, ids=[f"{case[1]} {case[0]}" for case in PARAMETERS]
)
def test_a_parameter_comes_back_as_it_went_in(
    kernel: DuckDBKernel, value: Any, type_text: str, arrow: pa.DataType
) -> None:
    assert kernel.describe("SELECT $1 AS x", {}, [value]) == (("x", type_text),)
    result = kernel.run("SELECT $1 AS x", {}, [value])
    assert result.schema == pa.schema([("x", arrow)])
    assert result.to_pylist() == [{"x": value}]


def test_columns_of_every_type_pass_through_unchanged(kernel: DuckDBKernel) -> None:
    names = (
        "BOOLEAN,TINYINT,SMALLINT,INTEGER,BIGINT,HUGEINT,UTINYINT,USMALLINT,UINTEGER,UBIGINT,FLOAT,DOUBLE,"
        "DECIMAL(4;1),DECIMAL(38;0),VARCHAR,BLOB,DATE,TIME"
    )
    names += ",TIMESTAMP,TIMESTAMP WITH TIME ZONE,INTERVAL,UUID,FLOAT[],HUGEINT[]"
    types = [parse_type(name.replace(";", ",")) for name in names.split(",")]
    schema = {f"c{i}": type_ for i, type_ in enumerate(types)}
    table = pa.table({name: pa.nulls(2, type_.arrow) for name, type_ in schema.items()})
    described = kernel.describe("SELECT * FROM s0", {"s0": schema})
    assert described == tuple((name, str(type_)) for name, type_ in schema.items())
    casts = [("s0", [("c5", "HUGEINT"), ("c23", "HUGEINT[]")])]
    assert kernel.run("SELECT * FROM s0", {"s0": table}, casts=casts).equals(table)


def test_a_hugeint_column_is_hugeint_and_a_decimal_of_38_digits_is_not(kernel: DuckDBKernel) -> None:
    table = pa.table(
        {"h": pa.array([Decimal(1)], pa.decimal128(38, 0)), "d": pa.array([Decimal(1)], pa.decimal128(38, 0))}
    )
    casts = [("s0", [("h", "HUGEINT")])]
    sql = "SELECT typeof(h) AS h, typeof(d) AS d FROM s0"
    for _ in range(2):  # the second call reads through the views of the first
        assert kernel.run(sql, {"s0": table}, casts=casts).to_pylist() == [{"h": "HUGEINT", "d": "DECIMAL(38,0)"}]


def test_a_column_that_is_not_what_its_cast_expects_is_read_as_it_is(kernel: DuckDBKernel) -> None:
    table = pa.table({"h": pa.array([Decimal("1.5")], pa.decimal128(38, 1))})
    assert kernel.run("SELECT h + 0 AS h FROM s0", {"s0": table}, casts=[("s0", [("h", "HUGEINT")])]).to_pylist() == [
        {"h": Decimal("1.5")}
    ]


def test_types_that_no_column_has_are_delivered(kernel: DuckDBKernel) -> None:
    sql = (
        "SELECT {'a': v, 'b': v > 1} AS s, MAP {k: v} AS m, CAST('x' AS ENUM ('y', 'x')) AS e, [v > 1, NULL] AS l, NULL"
        " AS n"
    )
    sql += " FROM s0 WHERE v < 3 ORDER BY e, v DESC"
    result = kernel.run(sql, {"s0": S0})
    assert result.to_pylist() == [
        {"s": {"a": 2, "b": True}, "m": [("b", 2)], "e": "x", "l": [True, None], "n": None},
        {"s": {"a": 1, "b": False}, "m": [("a", 1)], "e": "x", "l": [False, None], "n": None},
    ]
    assert [str(type_) for _, type_ in kernel.describe(sql, {"s0": {"k": "VARCHAR", "v": "INTEGER"}})] == [
        "STRUCT(a INTEGER, b BOOLEAN)",
        "MAP(VARCHAR, INTEGER)",
        "ENUM('y', 'x')",
        "BOOLEAN[]",
        "INTEGER",
    ]


def test_names_replace_duckdbs_own_and_may_repeat(kernel: DuckDBKernel) -> None:
    assert kernel.run("SELECT v, v FROM s0", {"s0": S0}, names=["x", "x"]).column_names == ["x", "x"]


def test_a_fragment_may_use_some_of_the_parameters(kernel: DuckDBKernel) -> None:
    assert kernel.run("SELECT v FROM s0 WHERE v = $2", {"s0": S0}, ["unused", 3, object()]).to_pylist() == [{"v": 3}]
    assert kernel.run("SELECT 1 AS one", {}, [7]).to_pylist() == [{"one": 1}]


def test_a_relation_without_columns_still_has_rows(kernel: DuckDBKernel) -> None:
    assert kernel.run("SELECT count(*) AS n FROM s0", {"s0": S0.select([])}).to_pylist() == [{"n": 3}]
    assert kernel.describe("SELECT count(*) AS n FROM s0", {"s0": {}}) == (("n", "BIGINT"),)


def test_one_statement_over_small_large_and_other_relations_in_turn(kernel: DuckDBKernel) -> None:
    sql = "SELECT count(*) AS n, sum(v) AS s FROM s0"
    large = pa.table({"v": pa.array(range(duckdb_slot._EXCHANGEABLE_ROWS_MAX + 1))})
    wider = pa.table({"w": [0, 0], "v": [1.5, 2.0]})
    seen = [kernel.run(sql, {"s0": table}).to_pylist()[0] for table in (S0, large, S0, wider, S0.slice(1, 1), large)]
    assert seen == [
        {"n": 3, "s": Decimal(6)},
        {"n": 20001, "s": Decimal(200010000)},
        {"n": 3, "s": Decimal(6)},
        {"n": 2, "s": 3.5},
        {"n": 1, "s": Decimal(2)},
        {"n": 20001, "s": Decimal(200010000)},
    ]


def test_rows_do_not_outlive_the_call() -> None:
    kernel = DuckDBKernel(threads=1)
    kernel.run("SELECT * FROM s0", {"s0": S0})
    (slot,) = kernel._idle
    assert [view.rows for view in slot._views.values()] == [None]
    kernel.close()


def test_order_is_kept_and_nulls_come_last(kernel: DuckDBKernel) -> None:
    assert kernel.run("SELECT k FROM s0 ORDER BY k DESC", {"s0": S0}).column("k").to_pylist() == ["b", "a", None]


def test_the_time_zone_is_utc_wherever_the_member_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    kernel = DuckDBKernel(threads=1)
    try:
        assert kernel.run("SELECT CAST(TIMESTAMPTZ '2024-07-01 12:00:00+00' AS VARCHAR) AS t", {}).to_pylist() == [
            {"t": "2024-07-01 12:00:00+00"}
        ]
    finally:
        kernel.close()


def test_no_warning_leaks(kernel: DuckDBKernel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.run("SELECT v FROM s0 WHERE v = $1", {"s0": S0}, [1])


ERRORS: list[tuple[str, list[Any], type[Error], str]] = [
    ("SELECT v FROM s0 WHERE", [], SqlSyntaxError, "syntax error"),
    ("SELECT nope FROM s0", [], UnknownColumnError, 'Referenced column "nope" not found'),
    ("SELECT s0.nope FROM s0", [], UnknownColumnError, "nope"),
    ("SELECT x.v FROM s0", [], UnknownTableError, 'Referenced table "x" not found'),
    ("SELECT * FROM elsewhere", [], UnknownTableError, "Table with name elsewhere does not exist"),
    ("SELECT nope(v) FROM s0", [], ProgrammingError, "Function with name nope does not exist"),
    ("SELECT k, sum(v) FROM s0", [], ProgrammingError, 'column "k" must appear in the GROUP BY clause'),
    ("SELECT sum(k) FROM s0", [], ProgrammingError, "sum"),
    ("SELECT CAST(k AS INTEGER) FROM s0", [], DataError, "Could not convert string 'a' to INT32"),
    ("SELECT CAST(100 AS TINYINT) + CAST(v * 20 AS TINYINT) FROM s0", [], DataError, "Overflow in addition of INT8"),
    ("SELECT 9223372036854775807 + v::BIGINT FROM s0", [], DataError, "Overflow in addition of INT64"),
    ("SELECT CAST('170141183460469231731687303715884105727' AS HUGEINT)", [], DataError, "more than 38 digits"),
    ("SELECT error('a reason')", [], DataError, "a reason"),
    ("SELECT regexp_matches(k, '(') FROM s0", [], DataError, "missing"),
    ("SELECT $1", [], ParameterError, r"uses \$1, but 0 parameters were given"),
    ("SELECT $2", [1], ParameterError, r"uses \$2, but 1 parameters were given"),
    ("SELECT $x", [1], ParameterError, "found x"),
    ("SELECT $1", [object()], ParameterError, "object"),
    ("SELECT $1", [2**200], ParameterError, "too large"),
    ("SELECT $1", ["\ud800"], ParameterError, "surrogate"),
    ("DROP TABLE s0", [], ProgrammingError, "one SELECT at a time; found DROP"),
    ("SELECT 1; SELECT 2", [], ProgrammingError, "found SELECT, SELECT"),
    ("", [], ProgrammingError, "found no statement"),
]


@pytest.mark.parametrize(("sql", "params", "error", "text"), ERRORS, ids=[case[0] or "nothing" for case in ERRORS])
def test_an_error_is_ours_and_the_kernel_goes_on(
    kernel: DuckDBKernel, sql: str, params: list[Any], error: type[Error], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        kernel.run(sql, {"s0": S0}, params)
    assert type(caught.value) is error
    assert "LINE 1" not in str(caught.value)
    assert kernel.run("SELECT v FROM s0 WHERE v = $1", {"s0": S0}, [2]).to_pylist() == [{"v": 2}]


def test_describe_raises_what_binding_finds_and_not_what_only_rows_would(kernel: DuckDBKernel) -> None:
    with pytest.raises(UnknownColumnError, match='"nope"'):
        kernel.describe("SELECT nope FROM s0", {"s0": {"k": "VARCHAR"}})
    assert kernel.describe("SELECT CAST(k AS INTEGER) AS i FROM s0", {"s0": {"k": "VARCHAR"}}) == (("i", "INTEGER"),)


FORBIDDEN = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_parquet('{file}')",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_statements_cannot_read_files(kernel: DuckDBKernel, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises(ProgrammingError, match="statements cannot read files"):
        kernel.run(sql.format(file=file), {})


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 1",
        "SET enable_external_access = true",
        "LOAD httpfs",
        "ATTACH 'x.db'",
        "COPY (SELECT 1) TO 'x.csv'",
        "PRAGMA version",
    ],
)
def test_only_a_select_runs(kernel: DuckDBKernel, statement: str) -> None:
    with pytest.raises(ProgrammingError, match="one SELECT at a time"):
        kernel.run(statement, {})
    with pytest.raises(ProgrammingError, match="one SELECT at a time"):
        kernel.describe(statement, {})


def test_python_variables_are_no_tables(kernel: DuckDBKernel) -> None:
    slot = sql = relations = S0  # names that DuckDB would find in the frames of the kernel and of this test
    assert slot is sql is relations
    for name in ("slot", "sql", "relations", "S0"):
        with pytest.raises(UnknownTableError, match=name):
            kernel.run(f"SELECT * FROM {name}", {})


def test_the_configuration_is_locked(kernel: DuckDBKernel) -> None:
    settings = kernel.run("SELECT name, value FROM duckdb_settings()", {}).to_pylist()
    assert {row["name"]: row["value"] for row in settings}.items() >= {
        "lock_configuration": "true",
        "enable_external_access": "false",
        "autoload_known_extensions": "false",
        "autoinstall_known_extensions": "false",
        "TimeZone": "UTC",
        "threads": "2",
    }.items()


def test_calls_from_several_threads_see_their_own_relations(kernel: DuckDBKernel) -> None:
    tables = [pa.table({"v": [number] * 10}) for number in range(8)]

    def total(number: int) -> int:
        result = kernel.run("SELECT sum(v) AS s FROM s0 WHERE v = $1", {"s0": tables[number % 8]}, [number % 8])
        return int(result.column("s")[0].as_py())

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(total, range(96))) == [number % 8 * 10 for number in range(96)]


ENDLESS = "SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range * b.range = 3"


def test_another_thread_can_stop_a_call(kernel: DuckDBKernel) -> None:
    cancellation, finished = Cancellation(), threading.Event()

    def cancel_until_finished() -> None:
        while not finished.wait(0.01):
            cancellation.cancel()

    stopper = threading.Thread(target=cancel_until_finished)
    stopper.start()
    try:
        with pytest.raises(JobCancelledError):
            kernel.run(ENDLESS, {}, cancellation=cancellation)
    finally:
        finished.set()
        stopper.join()
    with pytest.raises(JobCancelledError, match="before it began"):
        kernel.run("SELECT 1", {}, cancellation=cancellation)
    assert kernel.run("SELECT 1 AS one", {}).to_pylist() == [{"one": 1}]


def test_the_memory_limit_is_an_error_and_the_kernel_lives() -> None:
    kernel = DuckDBKernel(memory_limit_bytes=20_000_000, threads=1)
    try:
        with pytest.raises(LimitExceededError, match="start the members with a higher limit") as caught:
            kernel.run("SELECT len(list(range)) FROM range(10000000)", {})
        assert "SET " not in str(caught.value)
        assert kernel.run("SELECT 1 AS one", {}).to_pylist() == [{"one": 1}]
    finally:
        kernel.close()


LARGER_THAN_MEMORY = (
    "SELECT count(DISTINCT a) AS n FROM (SELECT hash(range)::VARCHAR || repeat('x', 50) AS a FROM range(700000))"
)


def test_what_passes_the_memory_limit_spills_where_it_may(tmp_path: Path) -> None:
    for directory in (None, tmp_path):
        kernel = DuckDBKernel(memory_limit_bytes=40_000_000, threads=1, spill_directory=directory)
        try:
            if directory is None:
                with pytest.raises(LimitExceededError):
                    kernel.run(LARGER_THAN_MEMORY, {})
            else:
                assert kernel.run(LARGER_THAN_MEMORY, {}).to_pylist() == [{"n": 700000}]
        finally:
            kernel.close()


def test_a_closed_kernel_says_so() -> None:
    kernel = DuckDBKernel(threads=1)
    kernel.run("SELECT 1", {})
    kernel.close()
    kernel.close()
    with pytest.raises(InterfaceError, match="closed"):
        kernel.run("SELECT 1", {})


def test_slots_are_bounded() -> None:
    kernel = DuckDBKernel(threads=1, slots_kept_max=3)
    for number in range(6):
        kernel.run(f"SELECT {number}", {})
    assert [slot.sql for slot in kernel._idle] == ["SELECT 3", "SELECT 4", "SELECT 5"]
    kernel.close()


def test_the_process_has_one_kernel() -> None:
    assert module.default_kernel() is module.default_kernel()
    assert module.configure(threads=7) is module.default_kernel()


def _wide(rows: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(range(rows), pa.int32()),
            "j": pa.array(range(rows), pa.int32()),
            "i": pa.array(range(rows), pa.int64()),
            "s": pa.array(["a"] * rows),
            "d": pa.array([dt.date(2024, 1, 1)] * rows),
            "m": pa.array([Decimal("1.00")] * rows, pa.decimal128(8, 2)),
            "f": pa.array([1.0] * rows),
        }
    )


@pytest.mark.skipif(duckdb.__version__ != "2.0.0", reason="DuckDB 2.0.1 has this defect no more")
def test_a_defect_of_duckdb_ends_one_statement_and_not_the_kernel() -> None:
    # DuckDB 2.0.0 takes a HUGEINT for an INTEGER here, and then calls the whole database invalid.
    sql = (
        "SELECT x8.c11 AS c12, x1.s AS c13 FROM s0 x1 SEMI JOIN s1 x2 ON x1.m = x2.m AND x1.k < ANY (SELECT {'a': 3}.a"
        " AS c7 FROM (SELECT x5.m AS m FROM s2 x4 FULL JOIN s3 x5 ON x4.k = x5.j WHERE (x5.m BETWEEN 1.50::DECIMAL(8,"
        " 2) AND 1::DECIMAL(8, 2) OR (x5.s IS NOT NULL OR ((x4.f IS NULL OR (x5.j IN (2, -1, 0) OR x5.d <> DATE"
        " '2024-01-03')) OR x5.s < 'b'))) AND (x5.m BETWEEN 0.25::DECIMAL(8, 2) AND 0.25::DECIMAL(8, 2) OR (x5.m"
        " BETWEEN 1.50::DECIMAL(8, 2) AND 0.25::DECIMAL(8, 2) OR x4.i <> 2))) x3 WHERE 1 = ALL (SELECT x6.k AS k FROM"
        " s4 x6 WHERE coalesce(x6.j = -1, TRUE) AND x6.k = 2 GROUP BY x6.k, x6.d)) LEFT JOIN (SELECT sum(x9.j) OVER"
        " (PARTITION BY x9.d) AS c10, max(x9.i) OVER (PARTITION BY x9.d) AS c11 FROM s5 x9 WHERE coalesce(x9.m ="
        " 0.25::DECIMAL(8, 2), TRUE) AND (x9.j IN (1, 0, -1) OR (x9.j IN (1, 1, 2) OR x9.m = x9.m)) QUALIFY sum(x9.j)"
        " OVER (PARTITION BY x9.d) > 2 ORDER BY ALL DESC LIMIT 1) x8 ON x1.k < x8.c10"
    )
    relations = {f"s{number}": _wide(rows) for number, rows in enumerate((2, 2, 2, 2, 3, 13))}
    kernel = DuckDBKernel()
    try:
        for _ in range(2):
            with pytest.raises(InternalError, match="Vector::Reference") as raised:
                kernel.run(sql, relations)
            assert "Stack Trace" not in str(raised.value)
            assert kernel.run("SELECT count(*) AS n FROM s0", {"s0": relations["s0"]}).to_pylist() == [{"n": 2}]
            with pytest.raises(ProgrammingError):
                kernel.run("SELECT * FROM read_csv('/etc/hostname')", {})
    finally:
        kernel.close()


def test_one_text_over_columns_that_arrow_does_not_tell_apart(kernel: DuckDBKernel) -> None:
    """Views are kept with the text: what they cast is part of what they are."""
    column = pa.table({"v": pa.array([Decimal(12)], pa.decimal128(38, 0))})
    for type_ in ("HUGEINT", None, "UHUGEINT", "HUGEINT", None):
        casts = [("r", [("v", type_)])] if type_ else []
        assert kernel.run("SELECT typeof(v) AS t FROM r", {"r": column}, casts=casts)["t"].to_pylist() == [
            type_ or "DECIMAL(38,0)"
        ]
        delivered = kernel.run("SELECT v FROM r", {"r": column}, casts=casts)["v"]
        assert (delivered.type, delivered.to_pylist()) == (pa.decimal128(38, 0), [Decimal(12)])


def test_one_text_over_columns_of_other_types_has_their_types(kernel: DuckDBKernel) -> None:
    texts = pa.table({"v": ["101"]})
    for type_, value in (("BIT", "101"), ("JSON", "101"), (None, "101"), ("TIMETZ", None), ("BIT", "101")):
        rows = pa.table({"v": ["01:02:03+00"]}) if value is None else texts
        assert (
            kernel.run("SELECT v FROM r", {"r": rows}, casts=[("r", [("v", type_)])] if type_ else [])["v"].to_pylist()
            == rows["v"].to_pylist()
        )
