"""The data source without Spark: what its processes do with it, called by hand."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, StringType, StructField, StructType

from secateur.connectors.spark import SecateurDataSource
from secateur.connectors.spark.writer import LoadWriter, StagedTask
from secateur.errors import (
    AuthenticationError,
    DuplicateKeyError,
    Error,
    ProgrammingError,
    UnknownColumnError,
    UnknownTableError,
    UnreachableError,
)
from secateur.partitioning.tables import TableDef

SCHEMA = StructType([StructField("id", LongType()), StructField("note", StringType())])


@pytest.fixture
def cluster(define: Callable[..., TableDef], loads_only: Callable[..., Any]) -> Any:
    return loads_only(define("orders", "id BIGINT NOT NULL, note VARCHAR", "id"), token="hush")


def writer(cluster: Any, *, overwrite: bool = False, schema: StructType = SCHEMA, **options: str) -> LoadWriter:
    """As it comes out of the process that made it: Spark pickles it."""
    given = CaseInsensitiveDict({"address": cluster.address, "table": "orders", "token": "hush", **options})
    made = SecateurDataSource(given).writer(schema, overwrite)
    copied = pickle.loads(pickle.dumps(made))
    assert isinstance(copied, LoadWriter)
    return copied


def batch(start: int, stop: int) -> pa.RecordBatch:
    return pa.record_batch({"id": list(range(start, stop)), "note": [None] * (stop - start)})


def run_task(monkeypatch: pytest.MonkeyPatch, load: LoadWriter, attempt: int, *batches: pa.RecordBatch) -> StagedTask:
    context = SimpleNamespace(taskAttemptId=lambda: attempt)
    monkeypatch.setattr("secateur.connectors.spark.writer.TaskContext.get", lambda: context)
    return pickle.loads(pickle.dumps(load.write(iter(batches))))


@pytest.mark.parametrize(
    ("option", "overwrite", "mode"),
    [
        pytest.param(None, False, "append", id="spark-says-append"),
        pytest.param(None, True, "overwrite", id="spark-says-overwrite"),
        pytest.param("append", False, "append", id="both-say-append"),
        pytest.param("overwrite", True, "overwrite", id="both-say-overwrite"),
        pytest.param("upsert", False, "upsert", id="upsert"),
        pytest.param("Delete", False, "delete", id="delete"),
    ],
)
def test_modes(cluster: Any, option: str | None, overwrite: bool, mode: str) -> None:
    assert writer(cluster, overwrite=overwrite, **({} if option is None else {"operation": option})).mode == mode


@pytest.mark.parametrize(
    ("options", "overwrite", "error", "words"),
    [
        pytest.param({"operation": "upsert"}, True, ProgrammingError, "contradicts", id="upsert-overwrites"),
        pytest.param({"operation": "delete"}, True, ProgrammingError, "contradicts", id="delete-overwrites"),
        pytest.param({"operation": "overwrite"}, False, ProgrammingError, "contradicts", id="overwrite-appends"),
        pytest.param({"operation": "merge"}, False, ProgrammingError, "'merge'", id="unknown-operation"),
        pytest.param(
            {"overwriteScope": "rows"}, True, ProgrammingError, "'rows' does not exist; use", id="unknown-scope"
        ),
        pytest.param(
            {"overwriteScope": "partitions"}, False, ProgrammingError, "goes with mode 'overwrite'", id="scope-appends"
        ),
        pytest.param(
            {"overwriteScope": "partitions"}, True, ProgrammingError, "orders has no range partitions", id="no-ranges"
        ),
        pytest.param({"primaryKey": "id"}, False, ProgrammingError, "add .*createTable", id="key-of-no-new-table"),
        pytest.param({"createTable": "yes"}, False, ProgrammingError, "'yes': expected true or false", id="create"),
        pytest.param(
            {"createTable": "true"},
            False,
            ProgrammingError,
            r"is there already, with the primary key \(id\) and not \(none\)",
            id="no-key",
        ),
        pytest.param(
            {"createTable": "true", "primaryKey": "id, note"},
            False,
            ProgrammingError,
            r"with the primary key \(id\) and not \(id, note\)",
            id="another-key",
        ),
        pytest.param(
            {"createTable": "true", "primaryKey": "id", "backups": "-1"},
            False,
            ProgrammingError,
            "backups='-1': expected",
            id="backups",
        ),
        pytest.param(
            {"createTable": "true", "primaryKey": "x", "table": "new"},
            False,
            ProgrammingError,
            "primaryKey names 'x', which is not a column of the DataFrame; it has id, note",
            id="key-of-no-column",
        ),
        pytest.param(
            {"parallel": "9"},
            False,
            ProgrammingError,
            "no option parallel to write with; it has address,",
            id="unknown-option",
        ),
        pytest.param({"table": ""}, False, ProgrammingError, "needs the option 'table'", id="no-table"),
        pytest.param({"chunk_bytes": "0"}, False, ProgrammingError, "chunk_bytes='0'", id="no-chunk"),
        pytest.param({"table": "ordres"}, False, UnknownTableError, "ordres", id="unknown-table"),
        pytest.param({"token": "wrong"}, False, AuthenticationError, "token", id="wrong-token"),
        pytest.param({"address": "secateur://127.0.0.1:1"}, False, UnreachableError, "127.0.0.1:1", id="nobody-there"),
    ],
)
def test_refusals(
    monkeypatch: pytest.MonkeyPatch,
    cluster: Any,
    options: dict[str, str],
    overwrite: bool,
    error: type[Error],
    words: str,
) -> None:
    monkeypatch.setattr("secateur.client.execution.retry_policy.CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(error, match=words) as caught:
        writer(cluster, overwrite=overwrite, **options)
    assert len(caught.value.__notes__) == 1


def test_columns_are_checked_before_any_task_runs(cluster: Any) -> None:
    with pytest.raises(UnknownColumnError, match="'x'"):
        writer(cluster, schema=StructType([*SCHEMA.fields, StructField("x", LongType())]))


def test_every_load_has_its_own_id_unless_it_is_given_one(cluster: Any) -> None:
    assert writer(cluster).load_id != writer(cluster).load_id
    assert writer(cluster, load_id="mine").load_id == "mine"


def test_the_token_is_not_shown(cluster: Any) -> None:
    assert "hush" not in repr(writer(cluster))


def test_a_commit_publishes_the_tasks_that_spark_reports_in_their_order(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    load = writer(cluster, operation="upsert", report=str(tmp_path / "report.json"))
    run_task(monkeypatch, load, 1, batch(0, 50))  # a task that failed: its message never arrives
    second = run_task(monkeypatch, load, 2, batch(50, 100))
    first = run_task(monkeypatch, load, 3, batch(0, 25), batch(25, 50))
    nothing = run_task(monkeypatch, load, 4)
    load.commit([first, second, nothing])
    ((args, published),) = cluster.published
    assert (args["load_id"], args["table"], args["table_id"], args["mode"]) == (load.load_id, "orders", 7, "upsert")
    assert set(map(tuple, args["parts"].values())) <= {(3, 2), (3,), (2,)}
    assert sorted(published.column("id").to_pylist()) == list(range(100))
    assert json.loads((tmp_path / "report.json").read_text()) == {"rows": 100, "partitions": 8, "tasks": 3}


def test_a_commit_without_rows_still_overwrites(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    load = writer(cluster, overwrite=True)
    load.commit([run_task(monkeypatch, load, 1)])
    ((args, published),) = cluster.published
    assert (args["mode"], args["parts"], published.num_rows) == ("overwrite", {}, 0)


def test_a_publication_that_fails_reports_nothing(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    load = writer(cluster, report=str(tmp_path / "report.json"))
    task = run_task(monkeypatch, load, 1, batch(0, 10), batch(0, 1))
    with pytest.raises(DuplicateKeyError) as caught:
        load.commit([task])
    assert len(caught.value.__notes__) == 1
    assert (tmp_path / "report.json").read_text() == ""


def test_nothing_is_published_that_cannot_be_reported(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    load = writer(cluster, report=str(tmp_path / "gone" / "report.json"))
    task = run_task(monkeypatch, load, 1, batch(0, 10))
    with pytest.raises(FileNotFoundError):
        load.commit([task])
    assert cluster.published == []


def test_an_abort_drops_the_load(cluster: Any) -> None:
    load = writer(cluster)
    load.abort([None, StagedTask(1, {0: 1})])
    assert cluster.aborted == [load.load_id]


def test_an_error_in_a_task_carries_its_note(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    load = writer(cluster)
    cluster.stop()
    with pytest.raises(Error) as caught:
        run_task(monkeypatch, load, 1, batch(0, 10))
    assert isinstance(caught.value, UnreachableError)
    assert len(caught.value.__notes__) == 1
