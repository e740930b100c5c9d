from __future__ import annotations

import pyarrow as pa
import pytest

from secateur.errors import UnknownColumnError
from secateur.partitioning.schemes import HashComponent, build_scheme, split_at
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import decode, encode

TYPES = {"Tail": parse_type("VARCHAR"), "day": parse_type("DATE"), "delay": parse_type("SMALLINT")}
FLIGHTS = TableDef(
    name="flights",
    table_id=7,
    columns=tuple(Column(name, type_, nullable=name == "delay") for name, type_ in TYPES.items()),
    primary_key=("day", "Tail"),
    scheme_or_reference=build_scheme(
        hashes=[HashComponent(("tail",), 4)],
        range_columns=["day"],
        ranges=split_at([("2024-01-01",)]),
        types=TYPES,
        primary_key=("day", "Tail"),
        table="flights",
    ),
    backups=2,
    version=3,
)


def test_round_trip() -> None:
    assert decode(encode(FLIGHTS), TableDef) == FLIGHTS


def test_schema_and_columns() -> None:
    assert FLIGHTS.arrow_schema == pa.schema(
        [pa.field("Tail", pa.string(), False), pa.field("day", pa.date32(), False), pa.field("delay", pa.int16())]
    )
    assert FLIGHTS.column("TAIL") is FLIGHTS.columns[0]
    assert FLIGHTS.partition_count == 8
    with pytest.raises(UnknownColumnError, match="table flights has no column 'tial'; it has Tail, day, delay"):
        FLIGHTS.column("tial")
