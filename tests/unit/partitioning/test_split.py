from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import NoRangeError
from secateur.partitioning.schemes import HashComponent, PartitionScheme, RangeComponent, RangePartition
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.types import parse_type


def table(partitions: int = 8, component: RangeComponent | None = None) -> TableDef:
    types = {"k": "BIGINT", "s": "VARCHAR", "u": "UUID"}
    columns = tuple(Column(name, parse_type(text), nullable=name != "k") for name, text in types.items())
    return TableDef(
        "t",
        1,
        columns,
        ("k",),
        PartitionScheme((HashComponent(("k",), partitions),), component, (("k", parse_type("BIGINT")),)),
    )


def rows(tdef: TableDef, keys: list[int], chunks: int = 1) -> pa.Table:
    ids = [key.to_bytes(16, "big") for key in keys]
    whole = conform(pa.table({"k": keys, "s": [str(key) for key in keys], "u": pa.array(ids, pa.binary(16))}), tdef)
    size = max(1, -(-len(keys) // chunks))
    return pa.concat_tables([whole.slice(start, size) for start in range(0, len(keys), size)])


@pytest.mark.parametrize("partitions", [1, 8, 70_000])
@pytest.mark.parametrize("chunks", [1, 5])
def test_every_row_once_in_its_partition_in_the_order_given(partitions: int, chunks: int) -> None:
    tdef = table(partitions)
    keys = np.random.default_rng(1).integers(0, 1000, 500).tolist()
    given = rows(tdef, keys, chunks)
    parts = split(given, tdef)
    assert list(parts) == sorted(parts)
    expected: dict[int, list[int]] = {}
    for key in keys:
        expected.setdefault(tdef.scheme.partition_of({"k": key}), []).append(key)
    assert {partition: part["k"].to_pylist() for partition, part in parts.items()} == expected
    for part in parts.values():
        assert part.schema == tdef.arrow_schema
        assert part["s"].to_pylist() == [str(key) for key in part["k"].to_pylist()]
        assert [value.int for value in part["u"].to_pylist()] == part["k"].to_pylist()


def test_rows_that_come_grouped_are_not_copied() -> None:
    tdef = table()
    keys = sorted(range(100), key=lambda key: (tdef.scheme.partition_of({"k": key}), key))
    given = rows(tdef, keys)
    low = given["k"].chunk(0).buffers()[1]
    for part in split(given, tdef).values():
        assert part["k"].chunk(0).buffers()[1].address == low.address


def test_one_batch_and_no_rows() -> None:
    tdef = table()
    assert split(rows(tdef, [5]).to_batches()[0], tdef)[tdef.scheme.partition_of({"k": 5})].num_rows == 1
    assert split(tdef.arrow_schema.empty_table(), tdef) == {}


def test_a_row_that_no_range_covers() -> None:
    tdef = table(2, RangeComponent(("k",), (RangePartition(0, (0,), (10,)),)))
    with pytest.raises(NoRangeError, match="k=10"):
        split(rows(tdef, [1, 10]), tdef)
