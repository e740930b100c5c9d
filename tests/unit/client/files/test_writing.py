from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.client.copy import read_batches, write_file
from secateur.errors import DataError, MemberLostError, ProgrammingError
from secateur.partitioning.tables import Column
from secateur.partitioning.types import parse_type
from secateur.protocol import CopyFile, CopyFormat, OptionValue, ResultColumn

ROWS = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x,y", None], "c": ["", 'q"r']})
COLUMNS = [ResultColumn("a", "INTEGER"), ResultColumn("b", "VARCHAR"), ResultColumn("c", "VARCHAR")]
ONE = [ResultColumn("a", "BIGINT")]


def options(path: Path, form: CopyFormat = CopyFormat.CSV, **given: OptionValue) -> CopyFile:
    return CopyFile(str(path), form, tuple(given.items()))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, 'a,b,c\n1,"x,y",""\n2,,"q""r"\n', id="as usual"),
        pytest.param({"HEADER": False, "DELIMITER": "|"}, '1|x,y|""\n2||"q""r"\n', id="no header, another delimiter"),
        pytest.param({"NULL": "NA"}, 'a,b,c\n1,"x,y",\n2,NA,"q""r"\n', id="a text for NULL"),
        pytest.param({"QUOTE": "'"}, "a,b,c\n1,'x,y',''\n2,,q\"r\n", id="another quote"),
        pytest.param({"FORCE_QUOTE": ("b",)}, 'a,"b",c\n1,"x,y",""\n2,,"q""r"\n', id="names of columns"),
        pytest.param(
            {"FORCE_QUOTE": ("*",), "DELIMITER": "';--"},
            '"a"\';--"b"\';--"c"\n"1"\';--"x,y"\';--""\n"2"\';--\';--"q""r"\n',
            id="all columns",
        ),
    ],
)
def test_csv(tmp_path: Path, given: dict[str, OptionValue], expected: str) -> None:
    path = tmp_path / "a.csv"
    assert write_file(options(path, **given), [ROWS], COLUMNS) == 2
    assert path.read_text() == expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def lost() -> Iterator[pa.Table]:
    yield pa.table({"a": [1]})
    raise MemberLostError("m2 is lost", member="m2")


@pytest.mark.parametrize("before", [None, "before"])
def test_what_is_there_is_replaced_when_all_is_written(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "a.csv"
    if before is not None:
        path.write_text(before)
    with pytest.raises(MemberLostError, match="m2 is lost"):
        write_file(options(path), lost(), ONE)
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ([] if before is None else [before])


def test_the_suffix_says_how_it_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    write_file(options(path), [pa.table({"a": [1]})], ONE)
    assert gzip.decompress(path.read_bytes()) == b"a\n1\n"


@pytest.mark.parametrize("form", list(CopyFormat))
def test_parts_are_written_as_they_come(tmp_path: Path, form: CopyFormat) -> None:
    path = tmp_path / "a"
    assert write_file(options(path, form), (pa.table({"a": [number]}) for number in range(3)), ONE) == 3
    found = pa.Table.from_batches(read_batches(options(path, form), [Column("a", parse_type("INTEGER"))]))
    assert found["a"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("form", list(CopyFormat))
def test_a_file_without_rows(tmp_path: Path, form: CopyFormat) -> None:
    path = tmp_path / "a"
    assert write_file(options(path, form), [ROWS.slice(0, 0)], COLUMNS) == 0
    if form is CopyFormat.PARQUET:
        assert pq.read_schema(path).names == ["a", "b", "c"]
    else:
        assert path.read_text() == ("a,b,c\n" if form is CopyFormat.CSV else "")


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(options(pipe), [pa.table({"a": [1]})], ONE)
        assert os.read(reading, 100) == b"a\n1\n"
        assert pipe.is_fifo()
    finally:
        os.close(reading)


def test_columns_of_one_name_get_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "a", "b"])
    write_file(
        options(path, CopyFormat.PARQUET), [table], [ResultColumn(name, "BIGINT") for name in table.column_names]
    )
    assert pq.read_table(path).column_names == ["a", "a_1", "b"]


@pytest.mark.parametrize("path", ["no/a.csv", "", "."])
def test_a_place_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ProgrammingError, match=r"cannot be written on the machine of this client|is not the path of a file"
    ):
        write_file(options(Path(path)), [ROWS], COLUMNS)
    assert list(tmp_path.iterdir()) == []


def test_an_option_with_a_value_that_it_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="quote option cannot exceed"):
        write_file(options(tmp_path / "a", QUOTE="two"), [ROWS], COLUMNS)
    assert list(tmp_path.iterdir()) == []
