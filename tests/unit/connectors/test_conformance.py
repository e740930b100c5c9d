"""Every source and sink passes the conformance kit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.connectors import (
    batch_source,
    file_source,
    function_sink,
    generator_source,
    iterable_source,
    logger_sink,
    parquet_sink,
    table_sink,
)
from secateur.engine.kernels import run
from secateur.engine.runtime import MemberServices
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import MemberStore
from secateur.testing import verify_processor

ROWS = pa.table({"k": [1, 2, 3, 4, 5], "v": ["a", "b", None, "d", "e"]})


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(batch_source(ROWS), id="batches"),
        pytest.param(iterable_source(ROWS.to_pylist(), batch_rows=2), id="iterable"),
        pytest.param(generator_source(lambda context: ROWS.to_pylist(), batch_rows=1), id="generator"),
        pytest.param(generator_source(lambda context: (row for row in ROWS.to_pylist())), id="generator-once"),
    ],
)
def test_sources(source: Any) -> None:
    verify_processor(source, (), ROWS, ordered=True)
    verify_processor(source, (), ROWS, ordered=True, edges=2)


def test_files(tmp_path: Path) -> None:
    pq.write_table(ROWS.slice(0, 2), tmp_path / "0.parquet")
    pq.write_table(ROWS.slice(2), tmp_path / "1.parquet")
    verify_processor(file_source(tmp_path / "*.parquet"), (), ROWS, ordered=True)


@pytest.mark.parametrize(
    "sink", [pytest.param(function_sink(lambda batch: None), id="function"), pytest.param(logger_sink(), id="logger")]
)
def test_sinks(sink: Any) -> None:
    verify_processor(sink, [ROWS], edges=0)


def test_parquet(tmp_path: Path) -> None:
    verify_processor(parquet_sink(tmp_path), [ROWS], edges=0)
    assert not list(tmp_path.glob(".*"))


@pytest.fixture
def services() -> Iterator[Mapping[type, Any]]:
    """A member with a table that takes every row."""
    types = {"k": parse_type("BIGINT"), "v": parse_type("VARCHAR")}
    scheme = build_scheme(hashes=[HashComponent(("k",), 4)], types=types, primary_key=("k",), table="kept")
    table = TableDef(
        "kept",
        1,
        tuple(Column(name, kind, nullable=name == "v") for name, kind in types.items()),
        ("k",),
        scheme,
        backups=0,
    )
    with ThreadPoolExecutor(1) as executor:
        yield {
            MemberServices: MemberServices(
                MemberStore(),
                run,
                executor,
                table=lambda name: table,
                write_rows=lambda table, rows, mode, change: rows.num_rows,
            )
        }


def test_table(services: Mapping[type, Any]) -> None:
    verify_processor(table_sink("kept"), [ROWS], edges=0, services=services)
