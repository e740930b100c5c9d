from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef, first_of_each_key
from secateur.partitioning.types import parse_type


def table(*types: str) -> TableDef:
    keys = tuple(Column(f"k{number}", parse_type(text), nullable=False) for number, text in enumerate(types))
    return TableDef(
        "t", 1, (*keys, Column("v", parse_type("INTEGER"))), tuple(key.name for key in keys), PartitionScheme()
    )


@pytest.mark.parametrize(
    ("types", "keys", "expected"),
    [
        pytest.param(["INTEGER"], [(1,), (2,), (1,), (3,), (2,)], [0, 1, 3], id="the first of each"),
        pytest.param(["INTEGER", "VARCHAR"], [(1, "a"), (1, "b"), (1, "a")], [0, 1], id="all columns of a key"),
        pytest.param(["UUID"], [(UUID(int=5).bytes,), (UUID(int=5).bytes,)], [0], id="an extension type"),
        pytest.param(["DECIMAL(30, 2)"], [(Decimal("1.50"),), (Decimal("1.50"),)], [0], id="decimals"),
        pytest.param(["BLOB"], [(b"a",), (b"a",), (b"",)], [0, 2], id="bytes"),
        pytest.param(["DOUBLE"], [(0.0,), (-0.0,), (math.nan,), (-math.nan,)], [0, 2], id="zeros and NaNs"),
        pytest.param(["FLOAT"], [(-0.0,), (0.0,), (math.nan,), (math.nan,)], [0, 2], id="of FLOAT"),
        pytest.param(["INTEGER"], [], [], id="nothing"),
    ],
)
def test_first_of_each_key(types: list[str], keys: list[tuple[Any, ...]], expected: list[int]) -> None:
    tdef = table(*types)
    columns = [[key[number] for key in keys] for number in range(len(types))] + [list(range(len(keys)))]
    schema = tdef.arrow_schema
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    assert first_of_each_key(pa.Table.from_arrays(arrays, schema=schema), tdef).column("v").to_pylist() == expected


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def test_rows_with_different_keys_are_not_copied() -> None:
    tdef = table("INTEGER")
    rows = pa.table({"k0": [1, 2], "v": [1, 1]}).cast(tdef.arrow_schema)
    assert first_of_each_key(rows, tdef) is rows
