from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from secateur.partitioning.schemes import SPARK_SEED, first_seed, hash_columns, hash_values, pmod, pmod_array
from secateur.partitioning.types import encode_array, parse_type, scalar_encoder

GOLDEN = [
    pytest.param([("VARCHAR", "a")], -8582455328737087284, id="string"),
    pytest.param([("BIGINT", 1), ("VARCHAR", "a")], -8527884376001292090, id="bigint then string"),
    pytest.param([("INTEGER", 1), ("VARCHAR", "a")], -8527884376001292090, id="integer hashes as bigint"),
    pytest.param([("UTINYINT", 1), ("VARCHAR", "a")], -8527884376001292090, id="utinyint hashes as bigint"),
    pytest.param([("DATE", date(2024, 1, 1))], 3242891694566951137, id="date"),
    pytest.param([("TIMESTAMP", datetime(2024, 1, 1))], 3859582417520161651, id="timestamp"),
    pytest.param(
        [("TIMESTAMP WITH TIME ZONE", datetime(2024, 1, 1, tzinfo=UTC))], 3859582417520161651, id="timestamptz"
    ),
    pytest.param([("DECIMAL(10,2)", Decimal("1.50"))], -6873856301616164681, id="narrow decimal"),
    pytest.param([("DECIMAL(30,2)", Decimal("-1.50"))], -6659465364316328129, id="wide decimal"),
    pytest.param([("BOOLEAN", True)], -6698625589789238999, id="boolean"),
    pytest.param([("BLOB", b"\x00\xff")], 879945414100663330, id="blob"),
]


def signed(state: int) -> int:
    return state - 2**64 if state >= 2**63 else state


@pytest.mark.parametrize(("columns", "expected"), GOLDEN)
def test_golden_values_of_the_scalar_form(columns: list[tuple[str, Any]], expected: int) -> None:
    types = [parse_type(text) for text, _ in columns]
    assert signed(hash_values([scalar_encoder(t) for t in types], [value for _, value in columns])) == expected


@pytest.mark.parametrize(("columns", "expected"), GOLDEN)
def test_golden_values_of_the_vectorised_form(columns: list[tuple[str, Any]], expected: int) -> None:
    encoded = [encode_array(pa.array([value] * 3, parse_type(text).arrow), parse_type(text)) for text, value in columns]
    assert hash_columns(encoded, SPARK_SEED, 3).view(np.int64).tolist() == [expected] * 3


def test_a_seed_is_hashed_first_as_a_bigint() -> None:
    assert first_seed(0) == 42
    assert first_seed(1) == xxhash.xxh64_intdigest(struct.pack("<q", 1), 42)
    assert signed(hash_values([scalar_encoder(parse_type("VARCHAR"))], ["a"], first_seed(1))) == -8527884376001292090


def test_null_leaves_the_state_as_it_is() -> None:
    text = parse_type("VARCHAR")
    number = parse_type("BIGINT")
    encoders = [scalar_encoder(number), scalar_encoder(text)]
    assert signed(hash_values(encoders, [None, "a"])) == -8582455328737087284
    assert hash_values(encoders, [None, None]) == 42
    encoded = [encode_array(pa.array([1, None, 1, None]), number), encode_array(pa.array(["a", "a", None, None]), text)]
    only_one = hash_values(encoders, [1, None])
    assert hash_columns(encoded, SPARK_SEED, 4).tolist() == [
        -8527884376001292090 % 2**64,
        -8582455328737087284 % 2**64,
        only_one,
        42,
    ]


@pytest.mark.parametrize("length", [*range(70), 95, 96, 97, 127, 128, 129, 160, 1000])
def test_every_length_hashes_as_the_c_library_does(length: int) -> None:
    rng = np.random.default_rng(length)
    rows = [rng.bytes(length) for _ in range(5)]
    encoded = encode_array(pa.array(rows, pa.binary()), parse_type("BLOB"))
    for seed in (0, 42, 2**64 - 1):
        assert hash_columns([encoded], seed, 5).tolist() == [xxhash.xxh64_intdigest(row, seed) for row in rows]


def test_rows_of_mixed_lengths_keep_their_own_seed_over_blocks() -> None:
    rng = np.random.default_rng(7)
    count = 40_000
    numbers = rng.integers(-(2**63), 2**63 - 1, count)
    texts = [b"x" * int(length) for length in rng.integers(0, 150, count)]
    encoded = [
        encode_array(pa.array(numbers), parse_type("BIGINT")),
        encode_array(pa.array(texts, pa.binary()), parse_type("BLOB")),
    ]
    states = hash_columns(encoded, SPARK_SEED, count).tolist()
    for row in (0, 1, 16_383, 16_384, 16_385, 32_768, count - 1):
        assert states[row] == xxhash.xxh64_intdigest(
            texts[row], xxhash.xxh64_intdigest(struct.pack("<q", numbers[row]), 42)
        )


def test_slices_of_arrays_hash_as_their_rows() -> None:
    cases = {
        "INTEGER": pa.array([9, 8, None, 7], pa.int32()),
        "BOOLEAN": pa.array([True, False, None, True]),
        "VARCHAR": pa.array(["zz", "y", None, "a"]),
        "DATE": pa.array([0, 1, None, 2], pa.date32()),
        "DECIMAL(5,1)": pa.array([Decimal("1.5"), Decimal("2.5"), None, Decimal("-3.5")], pa.decimal128(5, 1)),
        "DECIMAL(25,1)": pa.array([Decimal("1.5"), Decimal("2.5"), None, Decimal("-3.5")], pa.decimal128(25, 1)),
        "UUID": pa.array([b"0" * 16, b"1" * 16, None, b"2" * 16], pa.uuid()),
    }
    for text, array in cases.items():
        type_ = parse_type(text)
        whole = hash_columns([encode_array(array, type_)], SPARK_SEED, 4).tolist()
        assert hash_columns([encode_array(array.slice(1, 3), type_)], SPARK_SEED, 3).tolist() == whole[1:], text
        assert whole[2] == 42


def test_no_rows() -> None:
    for text in ("BIGINT", "VARCHAR", "UUID", "DECIMAL(30,1)", "BOOLEAN"):
        type_ = parse_type(text)
        assert hash_columns([encode_array(pa.array([], type_.arrow), type_)], SPARK_SEED, 0).tolist() == []


@pytest.mark.parametrize(
    ("state", "partitions", "expected"),
    [
        (0, 7, 0),
        (8, 7, 1),
        (2**64 - 1, 7, 6),
        (2**63, 7, 6),
        (2**63 - 1, 7, 0),
        (2**64 - 1, 16, 15),
        (2**63, 16, 0),
        (5, 1, 0),
        (2**64 - 1, 1, 0),
    ],
)
def test_pmod_reads_the_hash_as_signed(state: int, partitions: int, expected: int) -> None:
    assert pmod(state, partitions) == expected
    assert pmod_array(np.array([state], dtype=np.uint64), partitions).tolist() == [expected]
