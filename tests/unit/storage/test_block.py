from __future__ import annotations

import mmap
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from secateur.storage import BLOCK_BYTES_MIN, into_block, message_bytes
from secateur.storage import block as module


def wide(rows: int, columns: int = 1) -> pa.Table:
    return pa.table({f"c{column}": np.arange(rows, dtype=np.int64) for column in range(columns)})


def root_of(table: pa.Table) -> pa.Buffer:
    buffer = table.column(0).chunk(0).buffers()[1]
    while buffer.parent is not None:
        buffer = buffer.parent
    return buffer


def test_everything_survives() -> None:
    rows = 20_000
    table = pa.table(
        {
            "s": pa.array([None if n % 7 == 0 else f"é{n}" for n in range(rows)]),
            "d": pa.array(range(rows)).cast(pa.decimal128(19, 0)),
            "b": pa.array([n % 3 == 0 for n in range(rows)]),
            "u": pa.array([UUID(int=n) for n in range(rows)], pa.uuid()),
            "l": pa.array([[n, None] for n in range(rows)], pa.list_(pa.float32())),
            "t": pa.array(range(rows), pa.timestamp("us", "UTC")),
        },
        schema=None,
    ).cast(
        pa.schema(
            [
                pa.field("s", pa.string()),
                pa.field("d", pa.decimal128(19, 0), nullable=False),
                pa.field("b", pa.bool_()),
                pa.field("u", pa.uuid()),
                pa.field("l", pa.list_(pa.float32())),
                pa.field("t", pa.timestamp("us", "UTC")),
            ]
        )
    )
    result = into_block(table)
    assert result is not None
    assert result.equals(table)
    assert result.schema.equals(table.schema, check_metadata=True)
    assert [column.num_chunks for column in result.columns] == [1] * 6
    result.validate(full=True)


def test_all_columns_share_one_block_that_is_hardly_larger() -> None:
    result = into_block(wide(20_000, columns=5))
    assert result is not None
    roots = {root_of(result.select([column])).address for column in range(5)}
    assert len(roots) == 1
    assert root_of(result).size < 1.01 * result.nbytes + mmap.PAGESIZE


def test_of_a_slice_only_its_rows_are_copied() -> None:
    result = into_block(wide(1_000_000).slice(500_000, 20_000))
    assert result is not None
    assert result["c0"][0].as_py() == 500_000
    assert root_of(result).size < 200_000


def test_the_pool_is_not_asked(allocated: Any) -> None:
    table = wide(1_000_000)
    before = allocated()
    result = into_block(table)
    assert result is not None
    assert allocated() - before < 10_000


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(wide(0), id="no-rows"),
        pytest.param(wide(100), id="few-bytes"),
        pytest.param(wide(1_000_000).slice(7, 100), id="few-bytes-of-many"),
        pytest.param(wide(100, columns=300), id="many-columns-of-few-rows"),
        pytest.param(pa.table({}), id="no-columns"),
    ],
)
def test_small_tables_stay_where_they_are(table: pa.Table) -> None:
    assert into_block(table) is None


def test_without_a_mapping_the_heap_must_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(module.mmap, "mmap", refuse)
    assert into_block(wide(20_000)) is None


def test_message_bytes_count_what_a_slice_shows() -> None:
    table = wide(100_000)
    assert 800_000 <= message_bytes(table) < 801_000
    assert 8_000 <= message_bytes(table.slice(5, 1000)) < 9_000
    assert message_bytes(pa.concat_tables([table, table])) == 2 * message_bytes(table)
    assert message_bytes(table.schema.empty_table()) < BLOCK_BYTES_MIN
