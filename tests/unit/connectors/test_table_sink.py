"""Tables as sinks."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import batch_source, generator_source, table_sink
from secateur.dag import DAG, JobConfig, between
from secateur.errors import (
    DagError,
    DataError,
    DuplicateKeyError,
    Error,
    NotSupportedError,
    NullKeyError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.testing import LocalCluster

TYPES = {"k": parse_type("BIGINT"), "v": parse_type("VARCHAR")}
SCHEME = build_scheme(hashes=[HashComponent(("k",), 7)], types=TYPES, primary_key=("k",), table="kept")
COLUMNS = (Column("k", TYPES["k"], nullable=False), Column("v", TYPES["v"], nullable=True))
KEPT = TableDef("kept", 1, COLUMNS, ("k",), SCHEME, backups=0)
COPIED = TableDef("copied", 2, COLUMNS, ("k",), SCHEME, backups=0, replicated=True)
BEFORE = pa.table({"k": [1, 2], "v": ["old", "old"]})


def written(
    rows: Any, mode: str, *, partitioned: bool = True, table: str = "kept", everywhere: bool = False
) -> dict[int, str]:
    """What the table holds after a job has written rows into it."""
    dag = DAG()
    source = (
        generator_source(lambda context: [rows] if context.global_index == 0 else [])
        if everywhere
        else batch_source(rows)
    )
    dag.new_vertex("source", source)
    dag.new_vertex("sink", table_sink(table, mode=mode))
    edge = between("source", "sink")
    dag.edge(edge.partitioned("k", scheme=SCHEME).distributed() if partitioned else edge)

    async def main() -> dict[int, str]:
        async with LocalCluster(3) as cluster:
            cluster.create_table(KEPT, BEFORE)
            cluster.create_table(COPIED, BEFORE)
            await asyncio.wait_for(cluster.run(dag, JobConfig(timeout_s=20)), 30)
            return dict(
                sorted(zip(*(column.to_pylist() for column in cluster.read_table("kept").columns), strict=True))
            )

    return asyncio.run(main())


@pytest.mark.parametrize("everywhere", [True, False], ids=["owners-take-part", "owners-are-pruned"])
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "local"])
@pytest.mark.parametrize(
    ("rows", "mode", "expected"),
    [
        pytest.param({"k": [2, 3], "v": ["new", "new"]}, "upsert", {1: "old", 2: "new", 3: "new"}, id="upsert"),
        pytest.param(
            {"k": [3, 4], "v": ["new", "new"]}, "append", {1: "old", 2: "old", 3: "new", 4: "new"}, id="append"
        ),
        pytest.param(
            {"v": ["new"], "k": pa.array([3], pa.int16())},
            "append",
            {1: "old", 2: "old", 3: "new"},
            id="columns-by-name-converted",
        ),
        pytest.param({"k": [2, 3]}, "upsert", {1: "old", 2: "old", 3: None}, id="missing-column-is-kept"),
        pytest.param({"k": pa.array([], pa.int64())}, "append", {1: "old", 2: "old"}, id="no-rows"),
    ],
)
def test_rows_reach_the_owners(
    rows: dict[str, Any], mode: str, expected: dict[int, str], partitioned: bool, everywhere: bool
) -> None:
    assert written(pa.table(rows), mode, partitioned=partitioned, everywhere=everywhere) == expected


@pytest.mark.parametrize(
    ("rows", "table", "error", "message"),
    [
        pytest.param({"k": [2], "v": ["new"]}, "kept", DuplicateKeyError, "vertex 'sink'", id="key-is-there"),
        pytest.param({"k": [5], "w": [1]}, "kept", UnknownColumnError, "no column 'w'", id="unknown-column"),
        pytest.param(
            {"k": pa.array([None], pa.int64()), "v": ["new"]}, "kept", NullKeyError, "NOT NULL", id="null-key"
        ),
        pytest.param({"k": [5]}, "kept", DataError, "the data lack v", id="missing-column"),
        pytest.param({"k": [5]}, "none", UnknownTableError, "'none' does not exist", id="unknown-table"),
        pytest.param({"k": [5]}, "copied", NotSupportedError, "is replicated", id="replicated"),
    ],
)
def test_what_fails_the_job(rows: dict[str, Any], table: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        written(pa.table(rows), "append", table=table, partitioned=False)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(DagError, match="no mode 'overwrite'; a job writes with one of 'upsert', 'append'"):
        table_sink("kept", mode="overwrite")
