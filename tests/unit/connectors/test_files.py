"""Files as sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from secateur.connectors import file_source
from secateur.dag import JobConfig
from secateur.errors import DagError, DataError

ROWS = pa.table({"x": [1, 2, 3, 4], "y": ["a", "b", "c", "d"]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same four rows in each format, two in a file."""
    for part, rows in enumerate((ROWS.slice(0, 2), ROWS.slice(2))):
        pq.write_table(rows, tmp_path / f"{part}.parquet")
        pacsv.write_csv(rows, tmp_path / f"{part}.csv")
        feather.write_feather(rows, str(tmp_path / f"{part}.arrow"), compression="uncompressed")
        (tmp_path / f"{part}.txt").write_text(
            "".join(f"{x} {y}\n" for x, y in zip(rows["x"].to_pylist(), rows["y"].to_pylist(), strict=True))
        )
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "options", "expected"),
    [
        pytest.param("*.parquet", {}, [(1, "a"), (2, "b"), (3, "c"), (4, "d")], id="parquet"),
        pytest.param("*.csv", {}, [(1, "a"), (2, "b"), (3, "c"), (4, "d")], id="csv"),
        pytest.param("*.arrow", {}, [(1, "a"), (2, "b"), (3, "c"), (4, "d")], id="arrow"),
        pytest.param("*.txt", {}, [("1 a",), ("2 b",), ("3 c",), ("4 d",)], id="text"),
        pytest.param("1.csv", {}, [(3, "c"), (4, "d")], id="one-file"),
        pytest.param("1.c*", {"format": "csv"}, [(3, "c"), (4, "d")], id="format-by-name"),
        pytest.param("*.parquet", {"columns": ["y"]}, [("a",), ("b",), ("c",), ("d",)], id="projection"),
        pytest.param("*.csv", {"columns": ["y", "x"]}, [("a", 1), ("b", 2), ("c", 3), ("d", 4)], id="order-of-columns"),
        pytest.param(
            "*.csv",
            {"schema": pa.schema([("x", pa.string()), ("y", pa.string())]), "columns": ["x"]},
            [("1",), ("2",), ("3",), ("4",)],
            id="schema",
        ),
    ],
)
@pytest.mark.parametrize("members", [1, 3])
def test_the_rows_of_files(
    read: Any, folder: Path, pattern: str, options: dict[str, Any], expected: list[tuple[Any, ...]], members: int
) -> None:
    result = read(file_source(folder / pattern, **options), members=members)
    rows = result.table()
    assert sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected
    files = len(list(folder.glob(pattern)))
    assert result.members_touched == ("m1", "m2", "m3")[: min(members, files)]


def test_in_a_restricted_job_one_participant_reads_all_files(read: Any, folder: Path) -> None:
    result = read(file_source(folder / "*.parquet"), JobConfig(required_partitions={}))
    assert result.table()["x"].to_pylist() == [1, 2, 3, 4]
    assert result.members_touched == ("m1",)


def test_files_that_are_not_shared_are_read_by_every_member(read: Any, folder: Path) -> None:
    result = read(file_source(folder / "0.csv", shared=False))
    assert sorted(result.table()["x"].to_pylist()) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("name", "content", "schema"),
    [
        pytest.param("e.csv", "x,y\n", {"x": pa.null(), "y": pa.null()}, id="csv"),
        pytest.param("e.txt", "", {"line": pa.string()}, id="text"),
    ],
)
def test_an_empty_file_has_a_schema(
    read: Any, tmp_path: Path, name: str, content: str, schema: dict[str, pa.DataType]
) -> None:
    (tmp_path / name).write_text(content)
    rows = read(file_source(tmp_path / name)).table()
    assert rows.num_rows == 0
    assert {field.name: field.type for field in rows.schema} == schema


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        pytest.param("*", {}, "the suffix does not say the format", id="no-suffix"),
        pytest.param(
            "*.csv", {"format": "json"}, "there is no format 'json'; it is one of 'parquet'", id="unknown-format"
        ),
        pytest.param("*.txt", {"columns": ["x"]}, "have the one column 'line'", id="columns-of-text"),
    ],
)
def test_what_is_refused_at_once(pattern: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DagError, match=message):
        file_source(pattern, **options)


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        pytest.param("none*.csv", {}, r"no file matches .*none\*.csv' on the machine of member m1", id="no-file"),
        pytest.param(
            "none*.csv", {"shared": False}, r"no file matches .*on the machine of member m\d", id="no-file-of-its-own"
        ),
        pytest.param(
            "*.parquet",
            {"columns": ["z"]},
            r"\d.parquet has no column 'z'; it has x, y \(vertex 'source' on member m\d\)",
            id="no-column",
        ),
    ],
)
def test_what_fails_the_job(read: Any, folder: Path, pattern: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DagError, match=message):
        read(file_source(folder / pattern, **options))


def test_an_arrow_file_that_contradicts_itself_fails_the_job(read: Any, tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2**30, 2**30, 4], np.int32).tobytes())
    lying = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abcd"))
    with (
        pa.OSFile(str(tmp_path / "lying.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, pa.schema([("x", pa.string())])) as writer,
    ):
        writer.write(pa.record_batch([lying], ["x"]))
    with pytest.raises(DataError, match=r"lying\.arrow contradicts itself"):
        read(file_source(tmp_path / "*.arrow"), members=1)


def test_a_parquet_file_with_a_text_that_is_no_utf_8_fails_the_job(read: Any, tmp_path: Path) -> None:
    bad = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"x": bad}), tmp_path / "latin.parquet")
    with pytest.raises(DataError, match=r"latin\.parquet, column x, row 2: b'\\xff' is no UTF-8"):
        read(file_source(tmp_path / "*.parquet"), members=1)
