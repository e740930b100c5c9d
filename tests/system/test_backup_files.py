from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.client.backup_files import TableFiles, from_parquet

SCHEMA = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.month_day_nano_interval())])


def rows(start: int, count: int) -> pa.Table:
    intervals = [None if k % 3 == 0 else (k % 12, -k, 1000 * k) for k in range(start, start + count)]
    return pa.table([pa.array(range(start, start + count)), pa.array(intervals, SCHEMA.field("v").type)], schema=SCHEMA)


def test_many_rows_are_written_as_several_files_of_several_groups(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    parts = [rows(start, 1000) for start in range(0, 20_000, 1000)]
    part_bytes = parts[0].nbytes
    with closing(
        TableFiles(tmp_path, "t", SCHEMA, file_bytes=6 * part_bytes, group_bytes=2 * part_bytes)
    ) as table_files:
        written = [file for part in parts for file in table_files.add(part)] + list(table_files.finish())
    assert [file.rows for file in written] == [6000, 6000, 6000, 2000]
    assert [pq.ParquetFile(tmp_path / file.path).num_row_groups for file in written] == [3, 3, 3, 1]
    assert [file.bytes for file in written] == [(tmp_path / file.path).stat().st_size for file in written]
    read = [
        from_parquet(batch, SCHEMA)
        for file in written
        for batch in pq.ParquetFile(tmp_path / file.path).iter_batches(batch_size=700)
    ]
    assert pa.Table.from_batches(read).to_pylist() == pa.concat_tables(parts).to_pylist()


def test_slices_and_nulls_of_intervals_come_back(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    lists = pa.schema([pa.field("l", pa.list_(pa.month_day_nano_interval()))])
    values = [[(1, 2, 3), None], None, [], [(0, 0, 7)], [None]]
    table = pa.table([pa.array(values, lists.field("l").type)], schema=lists).slice(1, 4)
    with closing(TableFiles(tmp_path, "t", lists)) as table_files:
        (file,) = [*table_files.add(table), *table_files.finish()]
    read = [from_parquet(batch, lists) for batch in pq.ParquetFile(tmp_path / file.path).iter_batches(batch_size=3)]
    assert pa.Table.from_batches(read).to_pylist() == table.to_pylist()


def test_lists_of_intervals_keep_their_fixed_length(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pairs = pa.list_(pa.month_day_nano_interval(), 2)
    structs = pa.struct([("x", pairs)])
    schema = pa.schema([pa.field("l", pairs), pa.field("s", structs)])
    values = [[(1, 2, 3), None], None, [(0, 0, 7), (4, 0, 0)], [None, None]]
    columns = [pa.array(values, pairs), pa.array([{"x": value} for value in values], structs)]
    table = pa.table(columns, schema=schema).slice(1, 3)
    with closing(TableFiles(tmp_path, "t", schema)) as table_files:
        (file,) = [*table_files.add(table), *table_files.finish()]
    parts = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
    assert pq.read_schema(tmp_path / file.path).field("l").type == pa.list_(parts, 2)
    assert pq.read_schema(tmp_path / file.path).field("s").type == pa.struct([("x", pa.list_(parts, 2))])
    read = [from_parquet(batch, schema) for batch in pq.ParquetFile(tmp_path / file.path).iter_batches(batch_size=2)]
    assert pa.Table.from_batches(read).equals(table)


def test_lists_of_any_length_of_earlier_backups_are_read(tmp_path: Path) -> None:
    parts = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
    written = [[{"months": 1, "days": 2, "nanoseconds": 3}, None], None]
    pq.write_table(pa.table({"l": pa.array(written, pa.list_(parts))}), tmp_path / "old.parquet")
    schema = pa.schema([pa.field("l", pa.list_(pa.month_day_nano_interval(), 2))])
    (batch,) = pq.ParquetFile(tmp_path / "old.parquet").iter_batches()
    assert from_parquet(batch, schema).column(0).to_pylist() == [[pa.MonthDayNano([1, 2, 3]), None], None]


def test_a_table_without_rows_has_no_file(tmp_path: Path) -> None:
    with closing(TableFiles(tmp_path, "t", SCHEMA)) as table_files:
        assert [*table_files.add(SCHEMA.empty_table()), *table_files.finish()] == []
    assert list(tmp_path.iterdir()) == []
