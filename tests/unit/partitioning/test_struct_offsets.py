"""Structs that are slices: DuckDB reads them once they are moved, and refuses them otherwise."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from secateur.partitioning.types import without_struct_offsets

STRUCTS = pa.array([{"a": n, "b": {"c": str(n), "d": [{"e": n}]}} if n % 3 else None for n in range(9)])
ARRAYS = {
    "structs": STRUCTS,
    "lists": pa.array([[{"a": n}, None] if n % 3 else None for n in range(9)]),
    "maps": pa.array(
        [[("k", {"a": n})] if n % 3 else None for n in range(9)],
        pa.map_(pa.string(), pa.struct([("a", pa.int64())])),
    ),
    "lists of slices": pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), STRUCTS.slice(4)),
    "maps of slices": pa.MapArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b"]), STRUCTS.slice(4, 2)
    ),
    "a struct of slices": pa.StructArray.from_arrays([STRUCTS.slice(3)], names=["s"]),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("start", [0, 1])
def test_duckdb_reads_them(name: str, start: int) -> None:
    array = ARRAYS[name].slice(start)
    numbers = pa.array(range(2 * len(array)))
    table = pa.table({"c": pa.chunked_array([array, array]), "k": numbers})
    moved = without_struct_offsets(table)
    moved.validate(full=True)
    assert moved == table
    with duckdb.connect() as connection:
        read = connection.sql("SELECT c, k FROM moved").to_arrow_table()
    assert read["c"].to_pylist() == table["c"].to_pylist()
    assert read["k"].to_pylist() == list(range(2 * len(array)))


@pytest.mark.skipif(duckdb.__version__ != "2.0.0", reason="DuckDB 2.0.1 reads slices")
def test_the_oldest_duckdb_refuses_a_slice() -> None:
    table = pa.table({"c": STRUCTS.slice(1)})
    with duckdb.connect() as connection:
        connection.register("t", table)
        with pytest.raises(duckdb.InvalidInputException, match="below an offset"):
            connection.sql("SELECT c FROM t").fetchall()


def test_other_tables_are_handed_back() -> None:
    table = pa.table({"a": [1], "b": [[1]], "c": ["x"]})
    assert without_struct_offsets(table) is table
