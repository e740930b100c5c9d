"""Aggregation in one stage and in two: through the kit, and against DuckDB on random rows."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.dag import ProcessorMetaSupplier
from secateur.engine_limits import EngineLimits
from secateur.errors import DagError, DataError, LimitExceededError, NotSupportedError
from secateur.processors import (
    AggregateOperation,
    accumulate,
    aggregate,
    avg_of,
    combine,
    count_distinct_of,
    count_of,
    count_rows,
    list_of,
    max_of,
    min_of,
    sum_of,
)
from secateur.testing import verify_processor

NAN = float("nan")
ROWS = pa.table(
    {
        "k": pa.array(["b", "a", "b", None, "b", None]).dictionary_encode(),
        "i": pa.array([1, 2, None, 4, 1, 6], pa.int8()),
        "d": [0.5, None, NAN, 1.5, 0.5, 2.0],
        "m": pa.array(
            [Decimal("1.10"), None, Decimal("2.20"), None, Decimal("3.30"), Decimal("-1.00")], pa.decimal128(5, 2)
        ),
        "s": pa.array(["x", "y", None, "z", "x", "w"]).dictionary_encode(),
        "n": pa.nulls(6),
    }
)
ALL = {
    "rows": count_rows(),
    "values": count_of("i"),
    "sum_i": sum_of("i"),
    "sum_d": sum_of("d"),
    "sum_m": sum_of("m"),
    "min_d": min_of("d"),
    "max_s": max_of("s"),
    "avg_i": avg_of("i"),
    "avg_m": avg_of("m"),
    "kinds": count_distinct_of("s"),
    "list_i": list_of("i"),
    "sum_n": sum_of("n"),
}
BY_K = pa.table(
    {
        "k": pa.array(["b", "a", None]).dictionary_encode(),
        "rows": [3, 1, 2],
        "values": [2, 1, 2],
        "sum_i": [2, 2, 10],
        "sum_d": [NAN, None, 3.5],
        "sum_m": pa.array([Decimal("6.60"), None, Decimal("-1.00")], pa.decimal128(38, 2)),
        "min_d": [0.5, None, 1.5],
        "max_s": ["x", "y", "z"],
        "avg_i": [1.0, 2.0, 5.0],
        "avg_m": [6.6 / 3, None, -1.0],
        "kinds": [1, 1, 2],
        "list_i": pa.array([[1, None, 1], [2], [4, 6]], pa.list_(pa.field("l", pa.int8()))),
        "sum_n": pa.nulls(3, pa.int64()),
    }
)


SUMS = {
    "n": count_rows(),
    "total": sum_of("i"),
    "mean": avg_of("i"),
    "kinds": count_distinct_of("s"),
    "all": list_of("i"),
}
PARTIALS = pa.table(
    {
        "k": ["a", "b", None, "b", "a"],
        "n": [1, 2, 3, 4, 5],
        "total": pa.array([1, 2, None, 4, 5]),
        "mean.sum": pa.array([1, 2, None, 4, 5], pa.decimal128(38, 0)),
        "mean.count": [1, 2, 0, 4, 2],
        "kinds": [["x"], ["x"], None, ["x", "y"], ["z"]],
        "all": [[1], [2], [None], [None, 4], []],
    }
)


@pytest.mark.parametrize("block_rows", [1, 3, 1000])
def test_one_stage(block_rows: int) -> None:
    limits = EngineLimits(block_rows=block_rows)
    verify_processor(aggregate(["k"], ALL), [ROWS], BY_K, ordered=True, limits=limits)


def test_the_first_stage_emits_states() -> None:
    expected = pa.table(
        {
            "k": pa.array(["b", "a", None]).dictionary_encode(),
            "n": [3, 1, 2],
            "mean.sum": pa.array([2, 2, 10], pa.decimal128(38, 0)),
            "mean.count": [2, 1, 2],
        }
    )
    verify_processor(accumulate(["k"], {"n": count_rows(), "mean": avg_of("i")}), [ROWS], expected, ordered=True)


@pytest.mark.parametrize("block_rows", [1, 3, 1000])
def test_the_second_stage_combines_states(block_rows: int) -> None:
    limits = EngineLimits(block_rows=block_rows)
    expected = pa.table(
        {
            "k": ["a", "b", None],
            "n": [6, 6, 3],
            "total": [6, 6, None],
            "mean": [2.0, 1.0, None],
            "kinds": [2, 2, 0],
            "all": [[1], [2, None, 4], [None]],
        }
    )
    verify_processor(combine(["k"], SUMS), [PARTIALS], expected, ordered=True, limits=limits)


def test_a_first_stage_with_many_keys_sends_on_what_it_has() -> None:
    limits = EngineLimits(block_rows=4, partials_max=3)
    keys = pa.table({"k": list(range(10)) * 2})
    # how often a key is sent depends on the batches, so a second stage stands behind it in every job
    batches = keys.to_batches(max_chunksize=4)
    sent = pa.table({"k": [*range(8), 8, 9, 0, 1, *range(2, 10)], "n": [1] * 20})
    with pytest.raises(AssertionError, match="the processor failed with input in one batch"):
        verify_processor(accumulate(["k"], {"n": count_rows()}), [batches], sent, limits=limits)


def test_several_keys_and_keys_that_are_equal() -> None:
    rows = pa.table({"a": [0.0, -0.0, NAN, NAN, None, None], "b": [1, 1, 1, 1, 1, 2]})
    expected = pa.table({"a": [0.0, NAN, None, None], "b": [1, 1, 1, 2], "n": [2, 2, 1, 1]})
    verify_processor(aggregate(["a", "b"], {"n": count_rows()}), [rows], expected, ordered=True)


NOTHING = {
    "n": count_rows(),
    "values": count_of("i"),
    "total": sum_of("i"),
    "mean": avg_of("i"),
    "kinds": count_distinct_of("i"),
    "all": list_of("i"),
}
EMPTY = pa.table({"k": pa.array([], pa.string()), "i": pa.array([], pa.int8())})


@pytest.mark.parametrize("stage", [aggregate, combine], ids=["one stage", "second stage"])
def test_without_keys_there_is_a_row_without_input(stage: Callable[..., ProcessorMetaSupplier]) -> None:
    expected = pa.table(
        {
            "n": [0],
            "values": [0],
            "total": pa.nulls(1, pa.int64()),
            "mean": pa.nulls(1, pa.float64()),
            "kinds": [0],
            "all": pa.nulls(1, pa.list_(pa.int8())),
        }
    )
    verify_processor(stage([], NOTHING, schema=EMPTY.schema), [[]], expected)
    unknown = expected.set_column(2, "total", pa.nulls(1)).set_column(5, "all", pa.nulls(1))
    verify_processor(
        stage([], {name: NOTHING[name] for name in ("n", "values", "total", "all")}),
        [[]],
        unknown.select(["n", "values", "total", "all"]),
    )


def test_partial_results_of_nothing_agree_with_others() -> None:
    nothing = pa.table({"total": pa.nulls(1), "all": pa.nulls(1)})
    some = pa.table({"total": [2.5], "all": [[1]]})
    aggregates = {"total": sum_of("d"), "all": list_of("i")}
    verify_processor(combine([], aggregates), [nothing, some], pa.table({"total": [2.5], "all": [[1]]}))
    verify_processor(accumulate([], aggregates), [[]], nothing)


def test_names_of_the_user_may_look_like_those_of_states() -> None:
    """An average is a sum and a count in partial results, and keys and aggregates may be called as those are."""
    aggregates = {"m": avg_of("i"), "m.sum": sum_of("d"), "m.count": count_rows()}
    by = ["m.count_"]
    rows = pa.table({"m.count_": ["a", "a"], "i": [1, 4], "d": [0.5, 0.25]})
    expected = pa.table({"m.count_": ["a"], "m": [2.5], "m.sum": [0.75], "m.count": [2]})
    verify_processor(aggregate(by, aggregates), [rows], expected)
    verify_processor(combine([], {"i.count": sum_of("i")}), [[]], pa.table({"i.count": pa.nulls(1)}))
    partials = pa.table(
        {
            "m.count_": ["a", "a"],
            "m.sum_": pa.array([3, 4], pa.decimal128(38, 0)),
            "m.count__": [2, 1],
            "m.sum": [0.5, 0.25],
            "m.count": [4, 1],
        }
    )
    combined = pa.table({"m.count_": ["a"], "m": [7 / 3], "m.sum": [0.75], "m.count": [5]})
    verify_processor(combine(by, aggregates), [partials], combined)


def test_with_keys_no_row_is_no_group() -> None:
    expected = pa.table(
        {"k": pa.array([], pa.string()), "n": pa.array([], pa.int64()), "total": pa.array([], pa.int64())}
    )
    verify_processor(aggregate(["k"], {"n": count_rows(), "total": sum_of("i")}), [EMPTY], expected)
    verify_processor(aggregate(["k"], {"n": count_rows()}), [[]], pa.schema([]).empty_table())


def test_a_huge_group_and_many_groups() -> None:
    limits = EngineLimits(block_rows=1 << 12)
    huge = pa.table({"k": pa.array(np.zeros(20_000, np.int64)), "v": pa.array(np.arange(20_000))})
    expected = pa.table({"k": [0], "n": [20_000], "total": [199_990_000], "kinds": [20_000]})
    verify_processor(
        aggregate(["k"], {"n": count_rows(), "total": sum_of("v"), "kinds": count_distinct_of("v")}),
        [huge],
        expected,
        limits=limits,
    )
    many = huge.set_column(0, "k", huge["v"])
    verify_processor(
        aggregate(["k"], {"n": count_rows()}),
        [many],
        pa.table({"k": many["k"], "n": pa.array(np.ones(20_000, np.int64))}),
        ordered=True,
        limits=limits,
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: aggregate(["k"], {}), r"aggregate\(\) was given nothing to compute", id="nothing"),
        pytest.param(
            lambda: combine(["k"], {"k": count_rows()}),
            r"combine\(\) would have several columns of one name",
            id="name of a key",
        ),
        pytest.param(lambda: accumulate(["k", "k"], {"n": count_rows()}), "the keys are k, k", id="key twice"),
        pytest.param(
            lambda: aggregate([], {"n": count_rows(), "m": MEDIAN}),
            "n is a AggregateExpression, m is a AggregateOperation",
            id="both kinds",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_once(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DagError, match=message):
        make()


@pytest.mark.parametrize(
    ("rows", "aggregates", "error", "message"),
    [
        pytest.param({"k": [1], "v": [1]}, {"n": sum_of("z")}, DagError, "no column 'z'", id="unknown column"),
        pytest.param({"z": [1], "v": [1]}, {"n": sum_of("v")}, DagError, "no column 'k'", id="unknown key"),
        pytest.param(
            {"k": [1], "v": ["a"]},
            {"n": sum_of("v")},
            DagError,
            "sum of column 'v', which is VARCHAR; only numbers",
            id="sum of text",
        ),
        pytest.param(
            {"k": [1], "v": ["a"]},
            {"n": avg_of("v")},
            DagError,
            "avg of column 'v', which is VARCHAR",
            id="avg of text",
        ),
        pytest.param(
            {"k": [1], "v": pa.array([1], pa.duration("s"))},
            {"n": min_of("v")},
            NotSupportedError,
            "column 'v' cannot be aggregated",
            id="type",
        ),
        pytest.param(
            {"k": [1], "v": pa.array([1], pa.timestamp("ns"))},
            {"n": min_of("v")},
            DataError,
            "column 'v' of type timestamp[ns]",
            id="loses digits",
        ),
        pytest.param({"k": [1, 1], "v": [2**63 - 1, 1]}, {"n": sum_of("v")}, DataError, "", id="overflow"),
    ],
)
def test_what_goes_wrong_is_named(
    rows: dict[str, Any], aggregates: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(aggregate(["k"], aggregates), [pa.table(rows)])
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)


def test_partial_results_are_bounded() -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(aggregate(["k"], {"n": count_rows()}, bytes_max=10), [pa.table({"k": [1, 2, 3]})])
    assert isinstance(caught.value.__cause__, LimitExceededError)


def _add_values(state: list[float], rows: pa.RecordBatch) -> list[float]:
    return state + pc.drop_null(rows["v"]).to_pylist()


MEDIAN = AggregateOperation(
    create=list,
    accumulate=_add_values,
    combine=lambda one, other: one + other,
    state_type=pa.list_(pa.float64()),
    finish=lambda state: float(np.median(state)) if state else None,
    result_type=pa.float64(),
)


@pytest.mark.parametrize("block_rows", [1, 2, 1000])
def test_operations_of_ones_own(block_rows: int) -> None:
    limits = EngineLimits(block_rows=block_rows)
    rows = pa.table({"k": ["a", "b", "a", None, "a"], "v": [1.0, None, 5.0, 2.0, 3.0]})
    values = pa.table({"k": ["a", "b", None], "m": pa.array([[1.0, 5.0, 3.0], [], [2.0]])})
    medians = pa.table({"k": ["a", "b", None], "m": [3.0, None, 2.0]})
    verify_processor(aggregate(["k"], {"m": MEDIAN}), [rows], medians, ordered=True, limits=limits)
    verify_processor(accumulate(["k"], {"m": MEDIAN}), [rows], values, ordered=True, limits=limits)
    verify_processor(
        combine(["k"], {"m": MEDIAN}),
        [pa.concat_tables([values.slice(1), values])],
        pa.table({"k": ["b", None, "a"], "m": [None, 2.0, 3.0]}),
        limits=limits,
    )
    verify_processor(aggregate([], {"m": MEDIAN}), [rows], pa.table({"m": [2.5]}), limits=limits)
    verify_processor(aggregate([], {"m": MEDIAN}), [[]], pa.table({"m": pa.nulls(1, pa.float64())}), limits=limits)
    verify_processor(
        aggregate([], {"m": MEDIAN}), [rows.slice(0, 0)], pa.table({"m": pa.nulls(1, pa.float64())}), limits=limits
    )
    verify_processor(aggregate(["k"], {"m": MEDIAN}), [rows.slice(0, 0)], medians.slice(0, 0), limits=limits)


def test_a_state_of_another_type_is_named() -> None:
    broken = AggregateOperation(create=int, accumulate=lambda state, rows: "much", combine=max, state_type=pa.int64())
    with pytest.raises(AssertionError) as caught:
        verify_processor(aggregate(["k"], {"m": broken}), [pa.table({"k": [1]})])
    assert isinstance(caught.value.__cause__, DataError)
    assert "aggregate 'm': accumulate returned a value that is not a int64" in str(caught.value.__cause__)
