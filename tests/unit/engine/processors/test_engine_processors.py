"""The processors that SQL statements and results are made of pass the kit too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import table_source
from secateur.dag import Param
from secateur.engine.kernels import Fragment, run
from secateur.engine.runtime import MemberServices, ResultCollector, ResultSink
from secateur.engine.sql import FragmentStageSupplier, InputAlias, MemberScan
from secateur.partitioning.tables import TableDef
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.topology import MemberAddress, Topology, assign
from secateur.partitioning.topology.owner_routing import split
from secateur.storage import ChangeOperation, MemberStore
from secateur.testing import verify_processor

ROWS = pa.table({"k": ["a", "b", "a"], "v": [1, 2, None]})
NAMES = pa.table({"k": ["a", "c"], "name": ["first", "third"]})


def test_a_stage_of_one_input() -> None:
    stage = FragmentStageSupplier(
        Fragment(
            "SELECT k, count(*) FROM s0 WHERE v IS NULL OR v > $1 GROUP BY k",
            ("s0",),
            (("k", "VARCHAR"), ("n", "BIGINT")),
        ),
        [("s0", ROWS.schema)],
    )
    verify_processor(stage, [ROWS], pa.table({"k": ["a", "b"], "n": [1, 1]}), params=[1])
    verify_processor(stage, [[]], pa.table({"k": pa.array([], pa.string()), "n": pa.array([], pa.int64())}), params=[1])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(ROWS, id="some are kept"),
        pytest.param(ROWS.slice(0, 1), id="none is kept"),
        pytest.param([], id="none come"),
    ],
)
def test_a_stage_that_answers_row_by_row(rows: Any) -> None:
    fragment = Fragment("SELECT v + 1 AS w FROM s0 WHERE v > $1", ("s0",), (("w", "BIGINT"),), is_pipelineable=True)
    expected = pa.table({"w": pa.array([3] if rows is ROWS else [], pa.int64())})
    verify_processor(FragmentStageSupplier(fragment, [("s0", ROWS.schema)]), [rows], expected, params=[1])


@pytest.mark.parametrize("priorities", [[0, 0], [1, 0]])
def test_a_stage_of_two_inputs(priorities: list[int]) -> None:
    stage = FragmentStageSupplier(
        Fragment("SELECT l.v, r.name FROM l LEFT JOIN r USING (k)", ("l", "r"), (("v", "BIGINT"), ("name", "VARCHAR"))),
        [("l", ROWS.schema), ("r", NAMES.schema)],
    )
    expected = pa.table({"v": [1, 2, None], "name": ["first", None, "first"]})
    verify_processor(stage, [ROWS, NAMES], expected, priorities=priorities)
    verify_processor(stage, [ROWS, []], expected.set_column(1, "name", pa.nulls(3, pa.string())), priorities=priorities)


def test_a_stage_that_calls_one_input_by_two_names() -> None:
    fragment = Fragment(
        "SELECT l.k, count(*) FROM l JOIN r USING (k) GROUP BY k", ("l", "r"), (("k", "VARCHAR"), ("n", "BIGINT"))
    )
    stage = FragmentStageSupplier(
        fragment, [("x0", ROWS.schema)], aliases=[InputAlias("l", "x0"), InputAlias("r", "x0")]
    )
    verify_processor(stage, [ROWS], pa.table({"k": ["a", "b"], "n": [4, 1]}))


@pytest.mark.parametrize(
    "count",
    [pytest.param(12_000, id="many rows are read in a thread"), pytest.param(60, id="few rows are read at once")],
)
@pytest.mark.parametrize(
    ("sql", "is_row_by_row"),
    [
        pytest.param("SELECT v FROM s0 WHERE v >= 5", True, id="row by row"),
        pytest.param("SELECT DISTINCT v FROM s0 WHERE v >= 5", False, id="as a whole"),
    ],
)
def test_a_stage_that_scans_small_partitions(
    table_of: Callable[[pa.Table, str], TableDef], sql: str, is_row_by_row: bool, count: int
) -> None:
    rows = pa.table({"id": range(count), "v": [number // 3 for number in range(count)]})
    tdef, store = table_of(rows, "id"), MemberStore()
    store.create_table(tdef, range(tdef.partition_count))
    for partition, part in split(conform(rows, tdef), tdef).items():
        store.apply(tdef.table_id, partition, ChangeOperation.APPEND, part)
    fragment = Fragment(sql, ("s0",), (("v", "BIGINT"),), is_pipelineable=is_row_by_row)
    scan = MemberScan("s0", tdef.table_id, tuple(range(tdef.partition_count)), ("v",), None, None)
    wanted = [number // 3 for number in range(15, count)] if is_row_by_row else list(range(5, count // 3))
    with ThreadPoolExecutor(1) as executor:
        services = {MemberServices: MemberServices(store, run, executor, table=lambda name: tdef)}
        for _ in range(2):  # the second reads what has been joined
            verify_processor(
                FragmentStageSupplier(fragment, [], [scan]), expected=pa.table({"v": wanted}), services=services
            )


def test_the_sink_of_results() -> None:
    services: Mapping[type, ResultCollector] = {ResultCollector: ResultCollector(1 << 20)}
    verify_processor(ResultSink(), [ROWS], edges=0, services=services)
    kept = services[ResultCollector].tables()["trial"]
    assert set(kept["k"].to_pylist()) == {"a", "b"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, [0, 1, 2, 3, 4, 5], id="all"),
        pytest.param({"keys": [{"id": 4}, {"id": 1}, {"id": 99}]}, [1, 4], id="keys"),
        pytest.param({"keys": [{"id": Param(0)}]}, [3], id="parameter"),
        pytest.param({"columns": ["x", "id"]}, [0, 1, 2, 3, 4, 5], id="columns"),
    ],
)
def test_readers_of_tables(
    table_of: Callable[[pa.Table, str], TableDef], options: dict[str, Any], expected: list[int]
) -> None:
    rows = pa.table({"id": list(range(6)), "x": [i / 2 for i in range(6)]})
    tdef = table_of(rows, "id")
    store = MemberStore()
    store.create_table(tdef, range(tdef.partition_count))
    for partition, part in split(conform(rows, tdef), tdef).items():
        store.apply(tdef.table_id, partition, ChangeOperation.APPEND, part)
    topology = Topology(
        1, (MemberAddress("m1", "local", 0),), {tdef.scheme.affinity_group(): assign(tdef.partition_count, ["m1"], 1)}
    )
    wanted = rows.take(expected).select(options.get("columns", ["id", "x"]))
    with ThreadPoolExecutor(1) as executor:
        services = {MemberServices: MemberServices(store, run, executor, table=lambda name: tdef)}
        verify_processor(
            table_source("rows", **options), expected=wanted, params=[3], services=services, topology=topology
        )
