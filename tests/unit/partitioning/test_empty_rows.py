from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.partitioning.types import NESTED, TypeKind, empty_batch, empty_table, parse_type

KINDS = [
    *(kind.value for kind in TypeKind if kind not in NESTED and kind is not TypeKind.ENUM),
    "ENUM('a')",
    "STRUCT(a UUID, b INTERVAL[])",
    "MAP(UUID, STRUCT(a HUGEINT))",
]


@pytest.mark.parametrize("text", [*KINDS, *(f"{kind}[]" for kind in KINDS), *(f"{kind}[][]" for kind in KINDS)])
def test_every_type_has_a_table_without_rows(text: str) -> None:
    """Arrow's own way fails for lists of UUIDs."""
    schema = pa.schema([("a", parse_type(text).arrow), ("b", pa.struct([("x", parse_type(text).arrow)]))])
    table = empty_table(schema)
    table.validate(full=True)
    assert (table.num_rows, table.schema) == (0, schema)
    assert empty_batch(schema).schema == schema


def test_a_table_without_columns() -> None:
    assert empty_table(pa.schema([])).shape == (0, 0)
