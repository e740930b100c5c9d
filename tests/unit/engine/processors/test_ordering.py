"""Sort, top-n and distinct: through the kit, and against DuckDB on random rows."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from secateur.dag import ProcessorSupplier
from secateur.engine.exchange import RowBuffer
from secateur.engine_limits import EngineLimits
from secateur.errors import DagError, LimitExceededError
from secateur.processors import SortKey, desc, distinct, sort, top_n
from secateur.testing import verify_processor

NAN = float("nan")
ROWS = pa.table(
    {
        "k": pa.array(["b", "a", None, "a", "b", None]).dictionary_encode(),
        "v": pa.array([1.0, NAN, 0.0, -1.0, None, -0.0]),
        "n": pa.array([1, 2, 3, 4, 5, 6], pa.uint8()),
    }
)


def taken(*rows: int) -> pa.Table:
    return ROWS.take(pa.array(rows, pa.int64()))


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        pytest.param(sort("k"), [1, 3, 0, 4, 2, 5], id="stable, nulls last"),
        pytest.param(sort("v"), [3, 2, 5, 0, 1, 4], id="nan is the greatest number, -0.0 is 0.0"),
        pytest.param(sort(desc("v")), [1, 0, 2, 5, 3, 4], id="descending, nulls last all the same"),
        pytest.param(sort(desc("k", nulls_first=True), "v"), [2, 5, 0, 4, 3, 1], id="two keys"),
        pytest.param(sort(SortKey("n", descending=True)), [5, 4, 3, 2, 1, 0], id="unsigned"),
        pytest.param(top_n(2, "v"), [3, 2], id="top 2"),
        pytest.param(top_n(0, "v"), [], id="top 0"),
        pytest.param(top_n(99, desc("n")), [5, 4, 3, 2, 1, 0], id="top of fewer"),
        pytest.param(distinct("k"), [0, 1, 2], id="distinct key"),
        pytest.param(distinct("v"), [0, 1, 2, 3, 4], id="distinct double"),
        pytest.param(distinct(), [0, 1, 2, 3, 4, 5], id="distinct rows"),
    ],
)
@pytest.mark.parametrize("block_rows", [1, 2, 1000])
def test_rows_in_order(stage: ProcessorSupplier, expected: list[int], block_rows: int) -> None:
    limits = EngineLimits(block_rows=block_rows)
    verify_processor(stage, [ROWS], taken(*expected), ordered=True, limits=limits)


@pytest.mark.parametrize(
    "stage", [sort("k"), top_n(2, "k"), distinct("k"), distinct()], ids=["sort", "top_n", "distinct", "distinct all"]
)
def test_no_row_keeps_the_schema_and_no_batch_is_nothing(stage: ProcessorSupplier) -> None:
    verify_processor(stage, [ROWS.slice(0, 0)], ROWS.slice(0, 0))
    verify_processor(stage, [[]], pa.schema([]).empty_table())


def test_distinct_of_equal_and_of_nameless_columns() -> None:
    twice = pa.Table.from_arrays([pa.array([1, 1, 2]), pa.array([1, 1, None])], names=["a", "a"])
    verify_processor(distinct(), [twice], twice.take([0, 2]), ordered=True)


def test_dictionaries_that_differ_by_batch() -> None:
    batches = [
        pa.record_batch({"k": pa.array(values).dictionary_encode()}) for values in (["b", "c"], ["a", "b"], ["c", None])
    ]
    buffer = RowBuffer()
    for batch in batches:
        buffer.add(batch)
    table = buffer.take()
    assert table is not None
    assert table["k"].to_pylist() == ["b", "c", "a", "b", "c", None]
    assert buffer.rows == buffer.bytes == 0


def test_nullability_and_null_columns_do_not_matter() -> None:
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    verify_processor(
        sort("k"), [pa.table({"k": [2]}), pa.table({"k": [1]}, strict)], pa.table({"k": [1, 2]}), ordered=True
    )
    verify_processor(
        sort("k"), [pa.table({"k": pa.nulls(1)}), pa.table({"k": [1]})], pa.table({"k": [1, None]}), ordered=True
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        pytest.param(lambda: sort(), DagError, "name at least one column", id="sort by nothing"),
        pytest.param(lambda: sort("a", desc("a")), DagError, "each once", id="sort twice by one"),
        pytest.param(lambda: top_n(-1, "a"), DagError, "at least 0", id="negative n"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    make: Callable[[], ProcessorSupplier], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("stage", "inputs", "error", "message"),
    [
        pytest.param(sort("z"), [ROWS], DagError, "there is no column 'z'", id="unknown"),
        pytest.param(
            sort("n", bytes_max=3),
            [ROWS.select(["n"])],
            LimitExceededError,
            "bound is 3; sort fewer rows",
            id="sort memory",
        ),
        pytest.param(
            distinct("n", bytes_max=3),
            [ROWS.select(["n"])],
            LimitExceededError,
            "compare fewer columns",
            id="distinct memory",
        ),
        pytest.param(
            top_n(5, "n", bytes_max=3),
            [ROWS.select(["n"])],
            LimitExceededError,
            "ask for fewer rows",
            id="top-n memory",
        ),
        pytest.param(
            sort("n"),
            [ROWS, ROWS.select(["n"])],
            DagError,
            "different columns arrived: k, v, n, then n",
            id="columns differ",
        ),
        pytest.param(
            sort("n"),
            [ROWS.select(["n"]), pa.table({"n": ["x"]})],
            DagError,
            "'n' arrived as uint8 and as string",
            id="types differ",
        ),
    ],
)
def test_what_goes_wrong_is_named(
    stage: ProcessorSupplier, inputs: list[pa.Table], error: type[Exception], message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(stage, inputs)
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)


def random_rows(seed: int, count: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    doubles = [None if x == 0 else NAN if x == 1 else float(x % 5) for x in rng.integers(0, 9, count)]
    return pa.table(
        {
            "s": pa.array([None if x == 0 else f"s{x}" for x in rng.integers(0, 6, count)]).dictionary_encode(),
            "d": doubles,
            "i": pa.array(rng.integers(-3, 3, count), pa.int16(), mask=rng.random(count) < 0.2),
        }
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("stage", "query"),
    [
        pytest.param(sort("s", desc("d"), "i"), "SELECT * FROM rows ORDER BY s, d DESC NULLS LAST, i", id="sort"),
        pytest.param(
            top_n(7, desc("d"), "s", "i"), "SELECT * FROM rows ORDER BY d DESC NULLS LAST, s, i LIMIT 7", id="top-n"
        ),
    ],
)
def test_orders_as_duckdb_does(seed: int, stage: ProcessorSupplier, query: str) -> None:
    limits = EngineLimits(block_rows=16)
    rows = random_rows(seed, 90)
    connection = duckdb.connect()
    connection.register("rows", rows)
    expected = connection.sql(query).to_arrow_table()
    expected = pa.table(
        {
            field.name: column.cast(field.type) if field.name != "s" else column.cast(pa.string()).dictionary_encode()
            for field, column in zip(rows.schema, expected.columns, strict=True)
        }
    )
    verify_processor(stage, [rows], expected, ordered=True, limits=limits)


@pytest.mark.parametrize("seed", range(3))
def test_distinct_as_duckdb_does(seed: int) -> None:
    limits = EngineLimits(block_rows=16)
    rows = random_rows(seed, 90).select(["d", "i"])
    connection = duckdb.connect()
    connection.register("rows", rows)
    verify_processor(distinct(), [rows], connection.sql("SELECT DISTINCT * FROM rows").to_arrow_table(), limits=limits)
