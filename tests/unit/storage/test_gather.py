from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import LimitExceededError
from secateur.storage import block as module
from secateur.storage import concatenate, single_array
from secateur.storage.block import gather


def table(*texts: str) -> pa.Table:
    return pa.table({"n": pa.array(range(len(texts)), pa.int32()), "s": pa.array(texts)})


def test_all_rows_in_their_order() -> None:
    assert gather([table("a", "b"), table("c")]).to_pydict() == {"n": [0, 1, 0], "s": ["a", "b", "c"]}


def test_rows_by_number_across_tables() -> None:
    assert gather([table("a", "b"), table("c")], pa.array([2, 0])).to_pydict() == {"n": [0, 0], "s": ["c", "a"]}


@pytest.mark.parametrize("indices", [None, pa.array([0, 2])], ids=["all", "some"])
def test_one_chunk_that_begins_at_its_buffer(indices: pa.Array | None) -> None:
    result = gather([table("x", "a", "b").slice(1), table("c", "y").slice(0, 1)], indices)
    assert [(column.num_chunks, column.chunk(0).offset) for column in result.columns] == [(1, 0), (1, 0)]


def test_a_copied_slice_lets_its_parent_go(allocated: Any) -> None:
    parent = pa.table({"v": pa.array(np.arange(1_000_000))})
    kept = gather([parent.slice(10, 100)])
    del parent
    assert kept["v"].to_pylist()[:2] == [10, 11]
    assert allocated() < 10_000


@pytest.mark.parametrize("tables", [[table()], [table(), table()], [table().slice(0, 0).select(["n", "s"])]])
def test_no_rows_keep_the_schema(tables: list[pa.Table]) -> None:
    result = gather(tables)
    assert result.num_rows == 0
    assert result.schema == table().schema


def test_text_beyond_the_offsets_of_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 5)
    assert gather([table("abc"), table("de")]).num_rows == 2
    with pytest.raises(
        LimitExceededError,
        match="column s would hold 6 bytes in one partition, 5 are possible; create the table with more PARTITIONS",
    ):
        gather([table("abc"), table("xdefx").slice(0, 0), table("def")])


def test_only_the_visible_part_of_a_slice_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 5)
    assert concatenate(
        [pa.array(["abcdefgh", "ij"])[1:], pa.array([])[:0].cast(pa.string())], pa.field("s", pa.string())
    ).to_pylist() == ["ij"]


def test_single_array_copies_only_several_chunks() -> None:
    one = table("a", "b")
    assert single_array(one, "s").buffers()[2].address == one["s"].chunk(0).buffers()[2].address
    assert single_array(pa.concat_tables([one, one]), "s").to_pylist() == ["a", "b", "a", "b"]
    assert single_array(one.schema.empty_table(), "s").to_pylist() == []
