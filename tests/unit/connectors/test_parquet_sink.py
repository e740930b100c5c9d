"""Parquet files as sinks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.connectors import batch_source, generator_source, parquet_sink
from secateur.dag import DAG, between
from secateur.engine.processors import map_batches
from secateur.errors import DataError, JobFailedError

ROWS = pa.table({"x": list(range(10)), "y": [str(n) for n in range(10)]})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def dag_into(folder: Path, stage: Any) -> DAG:
    """Rows go to all members, through a stage on each, into one file on each."""
    dag = DAG()
    dag.new_vertex("source", generator_source(lambda context: [ROWS] if context.global_index == 0 else []))
    dag.new_vertex("stage", map_batches(stage))
    dag.new_vertex("sink", parquet_sink(folder))
    dag.edge(between("source", "stage").partitioned("x").distributed()).edge(between("stage", "sink"))
    return dag


def test_one_file_for_each_processor(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    run(dag_into(folder, lambda batch: batch))
    assert [name[:10] for name in names(folder)] == ["part-00000", "part-00001", "part-00002"]
    rows = pa.concat_tables(pq.read_table(folder / name) for name in names(folder))
    assert rows.sort_by("x") == ROWS


def test_two_jobs_share_a_folder(run: Any, tmp_path: Path) -> None:
    run(dag_into(tmp_path, lambda batch: batch))
    run(dag_into(tmp_path, lambda batch: batch))
    assert len(names(tmp_path)) == 6
    assert pq.read_table(tmp_path).num_rows == 20


def test_a_failed_job_leaves_the_folder_as_it_was(run: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"")

    def broken(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 7 in batch["x"].to_pylist():
            raise ValueError("seven")
        return batch

    with pytest.raises(JobFailedError, match="seven"):
        run(dag_into(tmp_path, broken))
    assert names(tmp_path) == ["mine.parquet"]


def test_a_processor_without_input_writes_no_file(write: Any, tmp_path: Path) -> None:
    write(ROWS, parquet_sink(tmp_path))
    assert len(names(tmp_path)) == 1


def test_rows_of_two_schemas_are_refused(run: Any, tmp_path: Path) -> None:
    dag = DAG()
    dag.new_vertex("source", batch_source(ROWS))
    dag.new_vertex("stage", map_batches(lambda batch: [batch, batch.select(["x"])]))
    dag.new_vertex("sink", parquet_sink(tmp_path))
    dag.edge(between("source", "stage")).edge(between("stage", "sink"))
    with pytest.raises(
        DataError, match=r"the first batch had x int64, y string, this one has x int64 \(vertex 'sink' on member m1\)"
    ):
        run(dag)
    assert names(tmp_path) == []
