"""The data: generated, the same in every run."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.column_type import parse_type

__all__ = ["readings", "readings_rows", "trips", "trips_rows"]

_TAILS: Final = 12_000
_DOUBLES: Final = 12
_TEXTS: Final = 4


def trips(partitions: int, table_id: int = 1) -> TableDef:
    """Describe the table."""
    columns = [("tail", "VARCHAR", False), ("at", "TIMESTAMP", False), ("n", "INTEGER", False)]
    columns += [(f"x{index}", "DOUBLE", True) for index in range(_DOUBLES)] + [
        (f"note{index}", "VARCHAR", True) for index in range(_TEXTS)
    ]
    scheme = PartitionScheme(hashes=(HashComponent(("tail",), partitions),), types=(("tail", parse_type("VARCHAR")),))
    return TableDef(
        "trips",
        table_id,
        tuple(Column(name, parse_type(text), null) for name, text, null in columns),
        ("tail", "at", "n"),
        scheme,
    )


def readings(table_id: int) -> TableDef:
    """Describe a table of three columns with a key of two: the least that a lookup can cost."""
    columns = (
        Column("device", parse_type("BIGINT"), False),
        Column("channel", parse_type("VARCHAR"), False),
        Column("value", parse_type("DOUBLE")),
    )
    return TableDef("readings", table_id, columns, ("device", "channel"), PartitionScheme())


def readings_rows(table: TableDef, rows: int) -> pa.Table:
    """Rows with twenty channels for each device."""
    numbers = np.arange(rows)
    arrays = [
        pa.array(numbers // 20),
        pa.array([f"channel-{number % 20:02}" for number in numbers]),
        pa.array(np.sin(numbers)),
    ]
    return pa.Table.from_arrays(arrays, schema=table.arrow_schema)


def trips_rows(table: TableDef, rows: int, tails: int = _TAILS) -> pa.Table:
    """Rows in random order, ``rows / tails`` for each tail number."""
    random = np.random.default_rng(20130101)
    arrays = [
        pa.array([f"N{number}" for number in random.integers(10_000, 10_000 + tails, rows)]),
        pa.array(random.integers(1_356_998_400_000_000, 1_388_534_400_000_000, rows), pa.timestamp("us")),
        pa.array(np.arange(rows), pa.int32()),
        *(pa.array(random.random(rows), mask=random.random(rows) < 0.1) for _ in range(_DOUBLES)),
        *(pa.array([f"note {number}" for number in random.integers(0, 1000, rows)]) for _ in range(_TEXTS)),
    ]
    return pa.Table.from_arrays(arrays, schema=table.arrow_schema)
