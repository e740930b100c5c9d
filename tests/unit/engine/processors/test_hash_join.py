"""Hash joins: through the kit, and against DuckDB on random rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from secateur.dag import ProcessorSupplier
from secateur.engine_limits import EngineLimits
from secateur.errors import DagError, DataError, LimitExceededError
from secateur.processors import hash_join
from secateur.testing import verify_processor

PROBE = pa.table({"k": pa.array(["a", "b", None, "a", "z"]).dictionary_encode(), "v": [1, 2, 3, 4, 5]})
BUILD = pa.table({"k": ["b", "a", None, "b"], "v": [10, 20, 30, 40], "w": pa.array([0.5, None, 1.5, 2.5])})
LATER = [1, 0]
"""Priorities: the build side first."""


def joined(
    k: list[str | None], v: list[int] | list[None], v_build: list[int | None], w: list[float | None]
) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(k, pa.string()).dictionary_encode(),
            "v": pa.array(v, pa.int64()),
            "v_build": pa.array(v_build, pa.int64()),
            "w": pa.array(w, pa.float64()),
        }
    )


INNER = joined(["a", "b", "b", "a"], [1, 2, 2, 4], [20, 10, 40, 20], [None, 0.5, 2.5, None])
LEFT = joined(
    ["a", "b", "b", None, "a", "z"],
    [1, 2, 2, 3, 4, 5],
    [20, 10, 40, None, 20, None],
    [None, 0.5, 2.5, None, None, None],
)

REST = joined([None], [None], [30], [1.5])
"""The rows of the build side without a partner."""
ALL_REST = joined(BUILD["k"].to_pylist(), [None] * 4, BUILD["v"].to_pylist(), BUILD["w"].to_pylist())


@pytest.mark.parametrize("block_rows", [1, 2, 1000])
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        pytest.param("inner", INNER, id="inner"),
        pytest.param("left", LEFT, id="left"),
        pytest.param("right", pa.concat_tables([INNER, REST]), id="right"),
        pytest.param("full", pa.concat_tables([LEFT, REST]), id="full"),
        pytest.param("semi", PROBE.take([0, 1, 3]), id="semi"),
        pytest.param("anti", PROBE.take([2, 4]), id="anti"),
    ],
)
def test_kinds(how: str, expected: pa.Table, block_rows: int) -> None:
    limits = EngineLimits(probe_block_rows=block_rows)
    stage = hash_join(["k"], how, build_schema=BUILD.schema, probe_schema=PROBE.schema)
    verify_processor(stage, [PROBE, BUILD], expected, ordered=True, priorities=LATER, limits=limits)


@pytest.mark.parametrize(
    ("how", "no_build", "no_probe"),
    [
        pytest.param("inner", INNER.slice(0, 0), INNER.slice(0, 0), id="inner"),
        pytest.param(
            "left", joined(PROBE["k"].to_pylist(), [1, 2, 3, 4, 5], [None] * 5, [None] * 5), LEFT.slice(0, 0), id="left"
        ),
        pytest.param("right", INNER.slice(0, 0), ALL_REST, id="right"),
        pytest.param(
            "full", joined(PROBE["k"].to_pylist(), [1, 2, 3, 4, 5], [None] * 5, [None] * 5), ALL_REST, id="full"
        ),
        pytest.param("semi", PROBE.slice(0, 0), PROBE.slice(0, 0), id="semi"),
        pytest.param("anti", PROBE, PROBE.slice(0, 0), id="anti"),
    ],
)
@pytest.mark.parametrize(
    "empty", [[], [pa.RecordBatch.from_pylist([], schema=BUILD.schema)]], ids=["no batch", "empty"]
)
def test_a_side_without_rows(how: str, no_build: pa.Table, no_probe: pa.Table, empty: list[Any]) -> None:
    stage = hash_join(["k"], how, build_schema=BUILD.schema, probe_schema=PROBE.schema)
    verify_processor(stage, [PROBE, empty], no_build, ordered=True, priorities=LATER)
    verify_processor(stage, [PROBE.slice(0, 0), BUILD], no_probe, priorities=LATER)
    verify_processor(stage, [[], BUILD], no_probe, priorities=LATER)
    if how in ("semi", "anti"):
        verify_processor(hash_join(["k"], how), [PROBE, []], no_build, priorities=LATER)
    if how == "inner":
        verify_processor(hash_join(["k"], how), [PROBE, []], pa.schema([]).empty_table(), priorities=LATER)


def test_several_columns_of_other_names_and_widths() -> None:
    probe = pa.table({"a": pa.array([1, 1, 2], pa.int8()), "b": [0.0, float("nan"), 1.0]})
    build = pa.table(
        {
            "x": pa.array([1, 1, 2], pa.uint64()),
            "y": pa.array([-0.0, float("nan"), None], pa.float64()),
            "a": ["p", "q", "r"],
        }
    )
    expected = pa.table(
        {
            "a": pa.array([1, 1], pa.int8()),
            "b": [0.0, float("nan")],
            "x": pa.array([1, 1], pa.uint64()),
            "y": [-0.0, float("nan")],
            "a2": ["p", "q"],
        }
    )
    verify_processor(
        hash_join({"a": "x", "b": "y"}, build_suffix="2"), [probe, build], expected, ordered=True, priorities=LATER
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: hash_join([]), "name at least one column", id="no key"),
        pytest.param(lambda: hash_join("k"), "joins on 'k'; name at least one column, as a list", id="text"),
        pytest.param(
            lambda: hash_join(["k"], "outer"),
            "knows inner, left, right, full, semi, anti, not 'outer'",
            id="unknown kind",
        ),
        pytest.param(
            lambda: hash_join(["k"], "right"), r"hash_join\(how='right'\) needs probe_schema", id="right without schema"
        ),
        pytest.param(
            lambda: hash_join(["k"], "full", build_schema=BUILD.schema),
            r"hash_join\(how='full'\) needs probe_schema",
            id="full without schema",
        ),
        pytest.param(
            lambda: hash_join(["k"], "left"), r"hash_join\(how='left'\) needs build_schema", id="left without schema"
        ),
    ],
)
def test_what_cannot_be_is_refused_at_once(make: Callable[[], ProcessorSupplier], message: str) -> None:
    with pytest.raises(DagError, match=message):
        make()


@pytest.mark.parametrize(
    ("stage", "build", "priorities", "error", "message"),
    [
        pytest.param(hash_join(["k"]), BUILD, [0, 0], DagError, "give its edge a smaller priority", id="no priority"),
        pytest.param(hash_join({"k": "z"}), BUILD, LATER, DagError, "no column 'z'", id="unknown column"),
        pytest.param(
            hash_join({"v": "k"}),
            BUILD,
            LATER,
            DagError,
            "compares 'v', which is integer, with 'k', which is string",
            id="types",
        ),
        pytest.param(
            hash_join({"v": "w"}),
            BUILD,
            LATER,
            DagError,
            "compares 'v', which is integer, with 'w', which is float",
            id="integer and float",
        ),
        pytest.param(
            hash_join(["k"], build_suffix=""), BUILD, LATER, DagError, "two columns 'v'; rename one", id="names"
        ),
        pytest.param(
            hash_join(["v"], "right", probe_schema=pa.schema({"v": pa.int8()})),
            pa.table({"v": [1000]}),
            LATER,
            DagError,
            "batches of different columns arrived: v, then k, v",
            id="another schema than the one given",
        ),
        pytest.param(
            hash_join(["k"], bytes_max=10),
            BUILD,
            LATER,
            LimitExceededError,
            "make the smaller input the build side",
            id="memory",
        ),
    ],
)
def test_what_goes_wrong_is_named(
    stage: ProcessorSupplier, build: pa.Table, priorities: list[int], error: type[Exception], message: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_processor(stage, [PROBE, build], priorities=priorities)
    assert isinstance(caught.value.__cause__, error)
    assert message in str(caught.value.__cause__)


def test_a_key_that_does_not_fit_the_other_side_is_refused() -> None:
    probe, build = pa.table({"k": pa.array([1], pa.int8())}), pa.table({"k": [1000]})
    with pytest.raises(AssertionError) as caught:
        verify_processor(hash_join(["k"], "right", probe_schema=probe.schema), [probe, build], priorities=LATER)
    assert isinstance(caught.value.__cause__, DataError)
    assert "a key of the build side does not fit column 'k' of the probe side (int8)" in str(caught.value.__cause__)
