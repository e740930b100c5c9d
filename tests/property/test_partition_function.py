"""The partition function computed three ways is one function: a Python value, an Arrow batch, and Spark's built-ins.

Spark is the oracle of the hash. Everything random comes from one seed, which a failure prints with the scheme that
differs; ``SECATEUR_SEED`` sets it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.partitioning.schemes import (
    HashComponent,
    PartitionScheme,
    RangeSpec,
    build_scheme,
    catch_all,
    single_value,
    split_at,
)
from secateur.partitioning.types import SqlType, TypeKind, parse_type

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("SECATEUR_SEED", "20240229"))
ROWS = 400
TYPES = {
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "int": "INTEGER",
    "big": "BIGINT",
    "utiny": "UTINYINT",
    "usmall": "USMALLINT",
    "uint": "UINTEGER",
    "ubig": "UBIGINT",
    "flag": "BOOLEAN",
    "text": "VARCHAR",
    "bytes": "BLOB",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "instant": "TIMESTAMP WITH TIME ZONE",
    "money": "DECIMAL(10,2)",
    "whole": "DECIMAL(18,0)",
    "wide": "DECIMAL(19,4)",
    "widest": "DECIMAL(38,10)",
    "id": "UUID",
    "odd `name`.x": "INTEGER",
}
SQL_TYPES = {name: parse_type(text) for name, text in TYPES.items()}
# A prime number of buckets near 2^20 makes a wrong hash bit all but certain to show.
BUCKETS = 999_983
MIXED = int(4 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
"""Of schemes that hash several columns, twice as many."""


def edge_values(type_: SqlType) -> list[Any]:
    if type_.is_integer:
        low, high = type_.integer_range
        return [low, high, low + 1, high - 1, 0, 1, high // 2, high // 2 + 1]
    match type_.kind:
        case TypeKind.BOOLEAN:
            return [True, False]
        case TypeKind.VARCHAR:
            return [
                "",
                "a",
                "\0",
                "é",
                "日本語",
                "🌍🌍",
                "x" * 31,
                "y" * 32,
                "z" * 33,
                "ß" * 100,
                "N14228",
                "a\U0010ffff",
                "\ufffd",
                "w" * 300,
            ]
        case TypeKind.BLOB:
            return [b"", b"\x00", b"\x00\xff", b"\xff" * 7, b"\x80" * 8, bytes(range(256)), b"q" * 129]
        case TypeKind.DATE:
            return [
                date(1970, 1, 1),
                date(1969, 12, 31),
                date(1, 1, 1),
                date(9999, 12, 31),
                date(2024, 2, 29),
                date(1582, 10, 10),
            ]
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            zone = UTC if type_.kind is TypeKind.TIMESTAMPTZ else None
            moments = [
                datetime(1970, 1, 1),
                datetime(1969, 12, 31, 23, 59, 59, 999_999),
                datetime(2, 1, 1),
                datetime(9998, 12, 31),
                datetime(2024, 3, 10, 2, 30),
            ]
            return [moment.replace(tzinfo=zone) for moment in moments]
        case TypeKind.DECIMAL:
            largest = 10**type_.precision - 1
            unscaled = [
                0,
                1,
                -1,
                largest,
                -largest,
                127,
                128,
                -128,
                -129,
                255,
                256,
                -256,
                min(2**63, largest),
                -min(2**63, largest),
            ]
            return [_exact(number, type_.scale) for number in unscaled]
        case TypeKind.UUID:
            return [UUID(int=0), UUID(int=2**128 - 1), UUID(int=2**127), UUID("7aca8bbb-0b5d-4ee7-aab5-e32ee907368b")]
        case _:
            raise AssertionError(type_)


def _exact(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -scale))


def random_value(type_: SqlType, rng: random.Random) -> Any:
    if type_.is_integer:
        return rng.randint(*type_.integer_range)
    match type_.kind:
        case TypeKind.BOOLEAN:
            return rng.random() < 0.5
        case TypeKind.VARCHAR:
            return "".join(rng.choice("abcXYZ019 _-éß日🌍") for _ in range(rng.randrange(45)))
        case TypeKind.BLOB:
            return rng.randbytes(rng.randrange(140))
        case TypeKind.DATE:
            return date.fromordinal(rng.randint(1, date.max.toordinal()))
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            moment = datetime(1970, 1, 1) + timedelta(microseconds=rng.randint(-2 * 10**15, 4 * 10**15))
            return moment.replace(tzinfo=UTC if type_.kind is TypeKind.TIMESTAMPTZ else None)
        case TypeKind.DECIMAL:
            largest = 10 ** rng.randint(1, type_.precision) - 1
            return _exact(rng.randint(-largest, largest), type_.scale)
        case TypeKind.UUID:
            return UUID(int=rng.getrandbits(128))
        case _:
            raise AssertionError(type_)


def make_rows(rng: random.Random) -> pa.Table:
    """Every type: its edge values, random values, and some NULLs."""
    columns = {}
    for name, type_ in SQL_TYPES.items():
        values = edge_values(type_)
        values += [random_value(type_, rng) if rng.random() < 0.95 else None for _ in range(ROWS - len(values))]
        rng.shuffle(values)
        columns[name] = pa.array(values, type_.arrow)
    return pa.table(columns)


def hash_schemes(rng: random.Random) -> Iterator[PartitionScheme]:
    """Each type alone, with and without a seed; then several columns and several components."""

    def build(*hashes: HashComponent) -> PartitionScheme:
        return build_scheme(hashes=hashes, types=SQL_TYPES, primary_key=list(SQL_TYPES), table="t")

    for name in SQL_TYPES:
        yield build(HashComponent((name,), BUCKETS))
        yield build(HashComponent((name,), BUCKETS, rng.choice([1, -1, 7, 2**63 - 1, -(2**63)])))
    for _ in range(MIXED):
        names = rng.sample(list(SQL_TYPES), rng.randint(2, 6))
        cut = rng.randint(1, len(names) - 1)
        yield build(HashComponent(tuple(names), BUCKETS))
        yield build(
            HashComponent(tuple(names[:cut]), rng.choice([1, 7, 64])),
            HashComponent(tuple(names[cut:]), rng.choice([1, 3, 271]), rng.choice([0, 5])),
        )


def range_schemes(rng: random.Random, rows: pa.Table) -> Iterator[PartitionScheme]:
    """Ranges on each type, then on pairs: splits that cover everything, and bounds with gaps, single values and hash
    components of their own.
    """
    pairs = [tuple(rng.sample(list(SQL_TYPES), 2)) for _ in range(10)]
    for columns in [*((name,) for name in SQL_TYPES), *pairs]:
        keys = {tuple(rows.column(name)[rng.randrange(ROWS)].as_py() for name in columns) for _ in range(9)}
        bounds = sorted(key for key in keys if None not in key)
        other = rng.choice([name for name in SQL_TYPES if name not in columns])
        common = {"range_columns": columns, "types": SQL_TYPES, "primary_key": list(SQL_TYPES), "table": "t"}
        yield build_scheme(hashes=[HashComponent((other,), 5)], ranges=split_at(bounds), **common)
        own = [
            None,
            (),
            (HashComponent((other,), 11, 3),),
            (HashComponent((columns[0],), 2), HashComponent((other,), 3)),
        ]
        gappy = [
            RangeSpec(lower, upper, hashes=rng.choice(own))
            for lower, upper in zip(bounds[1::2], bounds[2::2], strict=False)
        ]
        gappy.append(single_value(bounds[0], hashes=rng.choice(own)))
        yield build_scheme(hashes=[HashComponent((other,), 5)], ranges=gappy, **common)
        yield build_scheme(
            hashes=[HashComponent((other,), 5)], ranges=[*gappy, catch_all(hashes=rng.choice(own))], **common
        )


@pytest.fixture(scope="module")
def spark(spark_session: Callable[..., Any]) -> Any:
    # Not UTC, and with daylight saving: an instant that is moved by the session's zone shows.
    return spark_session({"spark.sql.session.timeZone": "America/New_York", "spark.sql.shuffle.partitions": "2"})


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return make_rows(random.Random(SEED))


def to_spark(spark: Any, rows: pa.Table, folder: Path) -> Any:
    """Rows by way of Parquet, which carries every type; UUIDs as text, in the upper case that must not matter."""
    columns = {
        name: column if column.type != pa.uuid() else upper_text(column)
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    pq.write_table(pa.table({**columns, "row": pa.array(range(rows.num_rows), pa.int32())}), folder / "rows.parquet")
    return spark.read.parquet(str(folder)).cache()


def upper_text(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else str(value).upper() for value in column.to_pylist()], pa.string())


@pytest.fixture(scope="module")
def frame(spark: Any, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return to_spark(spark, rows, tmp_path_factory.mktemp("rows"))


def spark_ids(frame: Any, schemes: list[PartitionScheme]) -> list[list[int | None]]:
    from secateur.connectors.spark.columns import partition_id

    found: list[list[int | None]] = []
    for start in range(0, len(schemes), 16):
        part = schemes[start : start + 16]
        answer = (
            frame.select("row", *(partition_id(scheme).alias(f"s{i}") for i, scheme in enumerate(part)))
            .sort("row")
            .toArrow()
        )
        found += [answer.column(f"s{i}").to_pylist() for i in range(len(part))]
    return found


def test_hash_components_agree_with_spark(frame: Any, rows: pa.Table) -> None:
    schemes = list(hash_schemes(random.Random(SEED + 1)))
    for scheme, expected in zip(schemes, spark_ids(frame, schemes), strict=True):
        assert scheme.partitions_of(rows).tolist() == expected, (SEED, scheme)
        assert [scheme.partition_of(row) for row in rows.select(scheme.columns).to_pylist()] == expected, (SEED, scheme)


@pytest.mark.slow
def test_ranges_agree_with_spark(frame: Any, rows: pa.Table) -> None:
    schemes = list(range_schemes(random.Random(SEED + 2), rows))
    covered = 0
    for scheme, expected in zip(schemes, spark_ids(frame, schemes), strict=True):
        inside = np.array([partition is not None for partition in expected])
        covered += int(inside.sum())
        kept = rows.filter(pa.array(inside))
        ids = [partition for partition in expected if partition is not None]
        assert scheme.partitions_of(kept).tolist() == ids, (SEED, scheme)
        assert [scheme.partition_of(row) for row in kept.select(scheme.columns).to_pylist()] == ids, (SEED, scheme)
        assert scheme.range is not None
        for row in rows.filter(pa.array(~inside)).select(scheme.range.columns).to_pylist():
            assert None in row.values() or scheme.range_position(tuple(row.values())) == -1, (SEED, scheme, row)
    assert covered > len(schemes) * ROWS // 3


@pytest.mark.parametrize("stored", [pa.timestamp("us"), pa.timestamp("us", "UTC")], ids=["zoneless", "zoned"])
@pytest.mark.parametrize("declared", ["TIMESTAMP", "TIMESTAMP WITH TIME ZONE"])
def test_zoned_and_zoneless_spark_timestamps_route_alike(
    spark: Any, tmp_path: Path, declared: str, stored: pa.DataType
) -> None:
    """Either Spark type may feed either column type: what counts is the microseconds, not how the session's zone shows
    them.
    """
    type_ = parse_type(declared)
    zone = UTC if type_.kind is TypeKind.TIMESTAMPTZ else None
    scheme = build_scheme(
        hashes=[HashComponent(("at",), 271)],
        range_columns=["at"],
        ranges=split_at([(datetime(1970, 1, 1, tzinfo=zone),), (datetime(2024, 3, 10, 4, tzinfo=zone),)]),
        types={"at": type_},
        primary_key=["at"],
        table="t",
    )
    micros = [0, -1, 1_709_166_600_000_000, 1_710_038_400_000_000, 1_710_045_000_000_000]
    expected = scheme.partitions_of(pa.table({"at": pa.array(micros, type_.arrow)})).tolist()
    assert spark_ids(to_spark(spark, pa.table({"at": pa.array(micros, stored)}), tmp_path), [scheme]) == [expected]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("xxhash64('a')", -8582455328737087284),
        ("xxhash64(CAST(1 AS BIGINT), 'a')", -8527884376001292090),
        ("xxhash64(DATE '2024-01-01')", 3242891694566951137),
        ("xxhash64(TIMESTAMP '2024-01-01 00:00:00 UTC')", 3859582417520161651),
        ("xxhash64(CAST(1.50 AS DECIMAL(10,2)))", -6873856301616164681),
        ("xxhash64(CAST(-1.50 AS DECIMAL(30,2)))", -6659465364316328129),
        ("xxhash64(true)", -6698625589789238999),
        ("xxhash64(X'00ff')", 879945414100663330),
    ],
)
def test_this_spark_has_the_golden_values(spark: Any, sql: str, expected: int) -> None:
    assert spark.sql(f"SELECT {sql}").collect()[0][0] == expected
