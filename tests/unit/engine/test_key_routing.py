"""Keys to routing partitions: equal keys agree, wherever they are computed, and keys spread."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.dag.edge import ROUTING_PARTITIONS, AllToOne, UnmatchedRows
from secateur.engine.exchange import can_route, routing_partitions, scheme_partitions
from secateur.engine.kernels.duckdb import arrow_type
from secateur.errors import DagError, NoRangeError, NullKeyError
from secateur.partitioning.schemes import HashComponent, PartitionScheme, RangeComponent, RangePartition, build_scheme
from secateur.partitioning.types import parse_type

NAN = float("nan")
OTHER_NAN = np.uint64(0xFFF8000000000001).view(np.float64)


def partitions(values: Any, arrow: pa.DataType) -> list[int]:
    array = values if isinstance(values, pa.Array) else pa.array(values, arrow)
    return routing_partitions(pa.record_batch({"k": array}), ["k"], "e").tolist()


def test_every_member_computes_the_same() -> None:
    """Literal, as members of two machines and two processes have to agree: nothing may depend on Python's or numpy's
    own hashes.
    """
    assert partitions([1, -1, None], pa.int64()) == [167, 136, 0]
    assert partitions(["a", "ä", None], pa.string()) == [178, 179, 0]
    assert partitions([1.0, 2.0, 3.0], pa.float64()) == [70, 169, 82]
    assert AllToOne("a").one_of(range(ROUTING_PARTITIONS)) == 227


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(pa.array(range(100_000)), id="consecutive"),
        pytest.param(pa.array(np.arange(100_000) * 86_400_000_000), id="days in microseconds"),
        pytest.param(pa.array(np.arange(100_000) << 32), id="high halves"),
        pytest.param(pa.array(np.arange(100_000, dtype=np.float64)), id="whole doubles"),
        pytest.param(pa.array(np.arange(100_000) / 4), id="quarters"),
        pytest.param(pa.array([f"user-{i:06}" for i in range(100_000)]), id="strings"),
    ],
)
def test_keys_spread_evenly(keys: pa.Array) -> None:
    counts = np.bincount(routing_partitions(pa.record_batch({"k": keys}), ["k"], "e"), minlength=ROUTING_PARTITIONS)
    assert counts.min() > 250
    assert counts.max() < 500


def test_pairs_spread_evenly() -> None:
    pairs = pa.record_batch({"a": np.repeat(np.arange(300), 300), "b": np.tile(np.arange(300), 300)})
    counts = np.bincount(routing_partitions(pairs, ["a", "b"], "e"), minlength=ROUTING_PARTITIONS)
    assert counts.min() > 220
    assert counts.max() < 450


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(([1, None, -7], pa.int8()), ([1, None, -7], pa.int64()), id="integer widths"),
        pytest.param(([1, 200], pa.uint8()), ([1, 200], pa.int32()), id="unsigned"),
        pytest.param(([0.0, NAN, 1.5], pa.float64()), ([-0.0, OTHER_NAN, 1.5], pa.float64()), id="zeros and NaNs"),
        pytest.param(([0.5, None], pa.float32()), ([0.5, None], pa.float64()), id="float widths"),
        pytest.param((["a", "b"], pa.string()), (pa.array(["a", "b"]).dictionary_encode(), None), id="dictionary"),
        pytest.param((["a", "b"], pa.string()), (["a", "b"], pa.large_string()), id="large string"),
        pytest.param(([None, None], pa.int64()), ([None, None], pa.null()), id="nulls of any type"),
        pytest.param(([datetime.time(1)], pa.time64("us")), ([3_600_000_000], pa.int64()), id="time as a number"),
    ],
)
def test_equal_keys_agree(first: tuple[Any, pa.DataType], second: tuple[Any, pa.DataType]) -> None:
    assert partitions(*first) == partitions(*second)


@pytest.mark.parametrize(
    ("values", "arrow"),
    [
        pytest.param([True, False], pa.bool_(), id="boolean"),
        pytest.param([datetime.date(2024, 1, 1)], pa.date32(), id="date"),
        pytest.param([datetime.datetime(2024, 1, 1)], pa.timestamp("us"), id="timestamp"),
        pytest.param([decimal.Decimal("1.50")], pa.decimal128(10, 2), id="decimal"),
        pytest.param([10**37], pa.decimal128(38, 0), id="hugeint"),
        pytest.param([uuid.UUID(int=5).bytes], pa.uuid(), id="uuid"),
        pytest.param([b"\x00"], pa.binary(), id="binary"),
    ],
)
def test_every_type_that_compares_can_be_a_key(values: list[Any], arrow: pa.DataType) -> None:
    (partition,) = set(partitions(values[:1] * 3, arrow))
    assert 0 <= partition < ROUTING_PARTITIONS


def test_several_columns_are_chained_in_order() -> None:
    batch = pa.record_batch({"a": [1, 2], "b": [2, 1]})
    assert (
        routing_partitions(batch, ["a", "b"], "e").tolist() == routing_partitions(batch, ["b", "a"], "e").tolist()[::-1]
    )
    assert len(set(routing_partitions(batch, ["a", "b"], "e").tolist())) == 2


def test_slices_hash_as_their_rows() -> None:
    whole = pa.record_batch({"k": pa.array(["x", "y", None, "z"])})
    assert (
        routing_partitions(whole.slice(1, 2), ["k"], "e").tolist()
        == routing_partitions(whole, ["k"], "e").tolist()[1:3]
    )


def test_a_scheme_routes_as_it_stores() -> None:
    scheme = build_scheme(
        hashes=[HashComponent(("c",), 8)], types={"c": parse_type("VARCHAR")}, primary_key=("c",), table="t"
    )
    batch = pa.record_batch({"customer": ["C1", "C2", "C3"]})
    assert scheme_partitions(batch, ["customer"], scheme, UnmatchedRows.REFUSE, "e").tolist() == [
        scheme.partition_of({"c": c}) for c in ("C1", "C2", "C3")
    ]


@pytest.mark.parametrize(
    "hashes", [pytest.param((), id="ranges"), pytest.param((HashComponent(("h",), 2),), id="hash and ranges")]
)
def test_strays_are_told_apart(hashes: tuple[HashComponent, ...]) -> None:
    types = (*((("h", parse_type("BIGINT")),) if hashes else ()), ("r", parse_type("BIGINT")))
    scheme = PartitionScheme(
        hashes, RangeComponent(("r",), (RangePartition(0, (0,), (10,)), RangePartition(1, (20,), (30,)))), types
    )
    rows = pa.record_batch(
        {"a": pa.array([1, 2, 3, 4, 5], pa.int64()), "b": pa.array([5, 25, 15, None, 9], pa.int64())}
    )
    columns = ["a", "b"] if hashes else ["b"]
    known = [scheme.partition_of({"h": h, "r": r}) for h, r in ((1, 5), (2, 25), (5, 9))]
    for unmatched in (UnmatchedRows.KEEP, UnmatchedRows.DROP):
        assert scheme_partitions(rows, columns, scheme, unmatched, "e").tolist() == [*known[:2], -1, -1, known[2]]
        assert scheme_partitions(rows.slice(0, 2), columns, scheme, unmatched, "e").tolist() == known[:2]
        assert scheme_partitions(rows.slice(0, 3), columns, scheme, unmatched, "e").tolist() == [*known[:2], -1]
        assert scheme_partitions(rows.slice(0, 0), columns, scheme, unmatched, "e").tolist() == []
    with pytest.raises(NoRangeError, match="no range partition covers r=15"):
        scheme_partitions(rows.slice(0, 3), columns, scheme, UnmatchedRows.REFUSE, "e")
    with pytest.raises(NullKeyError, match="column r partitions its table by range and is NULL"):
        scheme_partitions(rows.slice(3, 2), columns, scheme, UnmatchedRows.REFUSE, "e")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        pytest.param(
            "missing", "edge e is partitioned by 'missing', but the batch has the columns 'l'", id="missing column"
        ),
        pytest.param("l", r"partitioned by 'l' of type list<.*>, which cannot be a key", id="list"),
    ],
)
def test_what_cannot_be_a_key_is_named(column: str, message: str) -> None:
    with pytest.raises(DagError, match=message):
        routing_partitions(pa.record_batch({"l": [[1]]}), [column], "e")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BIGINT", True),
        ("UTINYINT", True),
        ("HUGEINT", True),
        ("DECIMAL(12,2)", True),
        ("DOUBLE", True),
        ("VARCHAR", True),
        ("BOOLEAN", True),
        ("BLOB", True),
        ("DATE", True),
        ("TIME", True),
        ("TIMESTAMP", True),
        ("TIMESTAMP WITH TIME ZONE", True),
        ("UUID", True),
        ("BIGINT[]", False),
        ("STRUCT(a BIGINT)", False),
        ("INTERVAL", False),
    ],
)
def test_which_types_can_be_keys(text: str, expected: bool) -> None:
    assert can_route(arrow_type(text)) is expected
