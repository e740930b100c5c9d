from __future__ import annotations

import pickle
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.errors import DataError, NoRangeError, NotSupportedError, NullKeyError, ParameterError, UnknownColumnError
from secateur.partitioning.schemes import (
    HashComponent,
    PartitionScheme,
    RangeComponent,
    RangePartition,
    RetiredRange,
    first_seed,
    hash_values,
    pmod,
)
from secateur.partitioning.types import SqlType, parse_type, scalar_encoder
from secateur.protocol import decode, encode

BIGINT, VARCHAR, DATE = parse_type("BIGINT"), parse_type("VARCHAR"), parse_type("DATE")


def types(**columns: str) -> tuple[tuple[str, SqlType], ...]:
    return tuple((name, parse_type(text)) for name, text in columns.items())


TWO_HASHES = PartitionScheme(
    (HashComponent(("a", "b"), 4), HashComponent(("c",), 3, 7)), types=types(a="BIGINT", b="VARCHAR", c="BIGINT")
)

# Three ranges over c, in an order of ordinals that is not the order of the bounds; the first has twice the buckets, the
# last none; ordinal 1 was dropped.
VARIED = PartitionScheme(
    (HashComponent(("a",), 4),),
    RangeComponent(
        ("c",),
        (
            RangePartition(2, None, (0,), "old", (HashComponent(("a",), 8),)),
            RangePartition(0, (0,), (10,)),
            RangePartition(3, (20,), (30,), None, ()),
        ),
        (RetiredRange(1, 5),),
    ),
    types(a="BIGINT", c="INTEGER"),
)


class TestIds:
    def test_no_component_is_one_partition(self) -> None:
        scheme = PartitionScheme()
        assert (scheme.partition_count, scheme.live_partition_count, scheme.columns) == (1, 1, ())
        assert scheme.partition_of({"whatever": 1}) == 0
        assert scheme.partitions_of(pa.table({"x": [1, 2]})).tolist() == [0, 0]

    def test_mixed_radix_in_the_order_written(self) -> None:
        assert TWO_HASHES.partition_count == 12
        assert TWO_HASHES.columns == ("a", "b", "c")
        row = {"a": 1, "b": "a", "c": 5}
        second = pmod(hash_values([scalar_encoder(BIGINT)], [5], first_seed(7)), 3)
        # pmod(-8527884376001292090, 4): the golden value of xxhash64(1, 'a').
        first = -8527884376001292090 % 4
        assert TWO_HASHES.partition_of(row) == first * 3 + second

    def test_blocks_follow_ordinals_and_dropped_ones_stay_reserved(self) -> None:
        assert [VARIED.block(ordinal) for ordinal in (0, 2, 3)] == [range(4), range(9, 17), range(17, 18)]
        assert VARIED.partition_count == 18
        assert VARIED.live_partition_count == 13
        assert VARIED.live_partitions().tolist() == [0, 1, 2, 3, *range(9, 18)]
        assert VARIED.live_partitions().dtype == np.int32
        with pytest.raises(KeyError):
            VARIED.block(1)

    def test_ranges_with_their_own_hashes(self) -> None:
        assert VARIED.hashes_of(0) == (HashComponent(("a",), 4),)
        assert VARIED.hashes_of(2) == (HashComponent(("a",), 8),)
        assert VARIED.hashes_of(3) == ()
        hashed = hash_values([scalar_encoder(BIGINT)], [1])
        assert VARIED.partition_of({"a": 1, "c": 5}) == pmod(hashed, 4)
        assert VARIED.partition_of({"a": 1, "c": -5}) == 9 + pmod(hashed, 8)
        assert VARIED.partition_of({"a": 1, "c": 29}) == 17
        assert [VARIED.range_position((c,)) for c in (-1, 0, 9, 10, 19, 20, 29, 30)] == [0, 1, 1, -1, -1, 2, 2, -1]

    def test_columns_are_named_once_own_hashes_included(self) -> None:
        own = RangePartition(0, None, None, hashes=(HashComponent(("d", "a"), 2),))
        assert PartitionScheme((HashComponent(("b",), 2),), RangeComponent(("c", "b"), (own,))).columns == (
            "b",
            "c",
            "d",
            "a",
        )

    def test_without_a_range_component_there_is_one_range(self) -> None:
        assert TWO_HASHES.ranges() == (RangePartition(0, None, None),)
        assert TWO_HASHES.range_position((1,)) == 0
        assert TWO_HASHES.block(0) == range(12)


class TestRows:
    def test_vectorised_equals_scalar(self) -> None:
        rng = np.random.default_rng(3)
        rows = pa.table(
            {
                "a": rng.integers(-100, 100, 5000),
                "c": pa.array(rng.integers(-30, 10, 5000), pa.int32()),
                "b": [str(n) for n in range(5000)],
            }
        )
        for scheme in (TWO_HASHES, VARIED):
            ids = scheme.partitions_of(rows)
            assert ids.dtype == np.int32
            assert ids.tolist() == [scheme.partition_of(row) for row in rows.to_pylist()]
            assert scheme.partitions_of(rows.to_batches()[0]).tolist() == ids.tolist()

    def test_chunks_do_not_matter(self) -> None:
        whole = pa.table({"a": pa.array(range(3000)), "b": [str(n) for n in range(3000)], "c": pa.array(range(3000))})
        chunked = pa.table(
            {
                "a": pa.chunked_array([whole["a"].combine_chunks()[:7], whole["a"].combine_chunks()[7:]]),
                "b": pa.chunked_array([whole["b"].combine_chunks()[n : n + 1] for n in range(3000)]),
                "c": whole["c"],
            }
        )
        assert TWO_HASHES.partitions_of(chunked).tolist() == TWO_HASHES.partitions_of(whole).tolist()

    def test_other_arrow_forms_are_converted(self) -> None:
        plain = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [3, 4]})
        other = pa.table(
            {"C": pa.array([3.0, 4.0]), "a": pa.array([1, 2], pa.int8()), "b": pa.array(["x", "y"]).dictionary_encode()}
        )
        assert TWO_HASHES.partitions_of(other).tolist() == TWO_HASHES.partitions_of(plain).tolist()

    def test_no_rows(self) -> None:
        assert (
            TWO_HASHES.partitions_of(
                pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string()), "c": pa.array([], pa.int64())})
            ).tolist()
            == []
        )

    def test_null_in_a_hash_column_leaves_the_hash(self) -> None:
        scheme = PartitionScheme((HashComponent(("a", "b"), 1000),), types=types(a="BIGINT", b="VARCHAR"))
        assert scheme.partition_of({"a": None, "b": "a"}) == -8582455328737087284 % 1000
        assert scheme.partition_of({"a": None, "b": None}) == 42
        assert scheme.partitions_of(pa.table({"a": pa.array([None, None], pa.int64()), "b": ["a", None]})).tolist() == [
            -8582455328737087284 % 1000,
            42,
        ]

    def test_null_in_a_range_column(self) -> None:
        with pytest.raises(NullKeyError, match="column c "):
            VARIED.partition_of({"a": 1, "c": None})
        with pytest.raises(NullKeyError, match="column c "):
            VARIED.partitions_of(pa.table({"a": [1], "c": pa.array([None], pa.int32())}))

    def test_a_gap(self) -> None:
        with pytest.raises(NoRangeError, match=r"no range partition covers c=15 \(1 such row\)") as scalar:
            VARIED.partition_of({"a": 1, "c": 15})
        assert scalar.value.details == {"value": ["15"]}
        with pytest.raises(NoRangeError, match=r"no range partition covers c=15 \(2 such rows of 3\)"):
            VARIED.partitions_of(pa.table({"a": [1, 1, 1], "c": pa.array([1, 15, 99], pa.int32())}))

    def test_a_gap_at_a_value_beyond_python(self) -> None:
        scheme = PartitionScheme(
            (), RangeComponent(("d",), (RangePartition(0, None, (date(2024, 1, 1),)),)), types(d="DATE")
        )
        with pytest.raises(NoRangeError, match=r"covers d=infinity \(1 such row\)"):
            scheme.partitions_of(pa.table({"d": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}))

    @pytest.mark.parametrize(
        ("type_", "canonical", "given"),
        [
            ("BIGINT", 5, "5"),
            ("BIGINT", 5, 5.0),
            ("BIGINT", 5, np.int64(5)),
            ("BIGINT", 5, Decimal(5)),
            ("BOOLEAN", True, np.bool_(True)),
            ("BOOLEAN", True, "true"),
            ("DECIMAL(10,2)", Decimal("1.50"), Decimal("1.5")),
            ("DECIMAL(10,2)", Decimal("1.50"), "1.5"),
            ("DECIMAL(10,2)", Decimal("2.00"), 2),
            ("DATE", date(2024, 1, 1), "2024-01-01"),
            ("DATE", date(2024, 1, 1), datetime(2024, 1, 1)),
            ("TIMESTAMP", datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
            ("TIMESTAMP WITH TIME ZONE", datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1)),
            ("UUID", UUID(int=255), "00000000-0000-0000-0000-0000000000FF"),
            ("BLOB", b"ab", bytearray(b"ab")),
        ],
    )
    def test_values_that_convert_exactly_route_as_the_canonical_one(
        self, type_: str, canonical: Any, given: Any
    ) -> None:
        scheme = PartitionScheme((HashComponent(("k",), 999_983),), types=types(k=type_))
        assert scheme.partition_of({"k": given}) == scheme.partition_of({"k": canonical})
        assert scheme.partition_of({"K": given}) == scheme.partition_of({"k": canonical})

    @pytest.mark.parametrize(
        ("values", "error", "message"),
        [
            ({"a": "x", "c": 1}, DataError, "column a"),
            ({"a": 1.5, "c": 1}, DataError, "column a"),
            ({"a": 2**63, "c": 1}, DataError, "column a"),
            ({"a": 1, "c": "x"}, DataError, "column c"),
            ({"a": 1}, ParameterError, "c missing, given were: a"),
            ({}, ParameterError, "a, c missing, given were: nothing"),
        ],
    )
    def test_values_that_do_not(self, values: Mapping[str, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            VARIED.partition_of(values)

    @pytest.mark.parametrize(
        ("type_", "bound", "given", "expected"),
        [
            ("INTEGER", 5, True, 0),
            ("INTEGER", 5, np.int32(5), 1),
            ("INTEGER", 5, "5", 1),
            ("DATE", date(2024, 1, 1), datetime(2024, 1, 1), 1),
            ("DATE", date(2024, 1, 1), "2023-12-31", 0),
            ("TIMESTAMP", datetime(2024, 1, 1), date(2024, 1, 1), 1),
            ("TIMESTAMP", datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), 1),
            ("DECIMAL(5,2)", Decimal("1.50"), 1.5, 1),
            ("UUID", UUID(int=255), "00000000-0000-0000-0000-0000000000FE", 0),
            ("BLOB", b"b", bytearray(b"b"), 1),
            ("VARCHAR", "b", np.str_("b"), 1),
        ],
    )
    def test_range_keys_convert_exactly_too(self, type_: str, bound: Any, given: Any, expected: int) -> None:
        scheme = PartitionScheme(
            (),
            RangeComponent(("k",), (RangePartition(0, None, (bound,)), RangePartition(1, (bound,), None))),
            types(k=type_),
        )
        assert scheme.partition_of({"k": given}) == expected

    @pytest.mark.parametrize(
        ("type_", "bound", "given"), [("INTEGER", 5, 5.5), ("DATE", date(2024, 1, 1), 5), ("VARCHAR", "5", 5)]
    )
    def test_range_keys_that_the_column_cannot_hold(self, type_: str, bound: Any, given: Any) -> None:
        scheme = PartitionScheme(
            (),
            RangeComponent(("k",), (RangePartition(0, None, (bound,)), RangePartition(1, (bound,), None))),
            types(k=type_),
        )
        with pytest.raises(DataError, match="column k"):
            scheme.partition_of({"k": given})

    def test_a_missing_column(self) -> None:
        with pytest.raises(UnknownColumnError, match="depends on column b, which the data lack; they have a, c"):
            TWO_HASHES.partitions_of(pa.table({"a": [1], "c": [1]}))


ONE_HASH = PartitionScheme((HashComponent(("b",), 271),), types=types(b="BIGINT"))


class TestPartitionFunction:
    @pytest.mark.parametrize(
        ("scheme", "names", "keys"),
        [
            (PartitionScheme(), ["a"], [[1], ["x"]]),
            (ONE_HASH, ["b"], [[0], [-(2**63)], [2**63 - 1], [None], ["12"], [12.0], [True]]),
            (ONE_HASH, ["a", "b", "c"], [["x", 5, None], [None, -5, 1], [0, "7", 0]]),
            (TWO_HASHES, ["c", "a", "b"], [[3, 1, "x"], [None, -1, ""], ["3", "1", "x"]]),
            (VARIED, ["a", "c"], [[1, -5], [2, 0], [3, 29], [None, 1], ["4", "7"]]),
        ],
        ids=["single", "one hash", "one hash among others", "two hashes", "ranges"],
    )
    def test_it_is_the_partition_of_the_named_values(
        self, scheme: PartitionScheme, names: list[str], keys: list[list[Any]]
    ) -> None:
        partition_of = scheme.partition_function(names)
        for key in keys:
            assert partition_of(key) == scheme.partition_of(dict(zip(names, key, strict=True)))

    def test_it_refuses_what_the_scheme_refuses(self) -> None:
        with pytest.raises(DataError, match="b"):
            ONE_HASH.partition_function(["b"])(["no number"])
        with pytest.raises(NoRangeError):
            VARIED.partition_function(["a", "c"])([1, 15])
        with pytest.raises(NullKeyError):
            VARIED.partition_function(["a", "c"])([1, None])


class TestIdentity:
    @pytest.mark.parametrize("scheme", [PartitionScheme(), TWO_HASHES, VARIED], ids=["single", "hashes", "ranges"])
    def test_wire_and_pickle_round_trips(self, scheme: PartitionScheme) -> None:
        scheme.partition_of({"a": 1, "b": "x", "c": 1})
        for copy in (decode(encode(scheme), PartitionScheme), pickle.loads(pickle.dumps(scheme))):
            assert copy == scheme
            assert hash(copy) == hash(scheme)
            assert copy.affinity_group() == scheme.affinity_group()
            assert copy.partition_of({"a": 1, "b": "x", "c": 1}) == scheme.partition_of({"a": 1, "b": "x", "c": 1})

    def test_bounds_of_every_type_survive_the_wire(self) -> None:
        bounds = {
            "DATE": date(2024, 1, 1),
            "TIMESTAMP": datetime(2024, 1, 1, 0, 0, 0, 1),
            "TIMESTAMP WITH TIME ZONE": datetime(2024, 1, 1, tzinfo=UTC),
            "DECIMAL(38,10)": Decimal("12345678901234567890.1234567890"),
            "UUID": UUID(int=7),
            "BLOB": b"\x00",
            "UBIGINT": 2**64 - 1,
            "BOOLEAN": True,
            "VARCHAR": "it's\0 \U0001f30d",
        }
        for text, value in bounds.items():
            scheme = PartitionScheme(
                (),
                RangeComponent(("k",), (RangePartition(0, None, (value,)), RangePartition(1, (value,), None))),
                types(k=text),
            )
            copy = decode(encode(scheme), PartitionScheme)
            assert copy == scheme
            assert copy.affinity_group() == scheme.affinity_group()
            assert copy.partition_of({"k": value}) == 1

    def test_the_affinity_group_forgets_names_and_nothing_else(self) -> None:
        def scheme(
            *,
            columns: tuple[str, str] = ("x", "y"),
            partitions: int = 8,
            seed: int = 0,
            types: tuple[str, str] = ("BIGINT", "DATE"),
            upper: date = date(2024, 1, 1),
            ordinal: int = 0,
            name: str | None = None,
            own: tuple[HashComponent, ...] | None = None,
            retired: tuple[RetiredRange, ...] = (),
        ) -> PartitionScheme:
            component = RangeComponent((columns[1],), (RangePartition(ordinal, None, (upper,), name, own),), retired)
            typed = tuple((column, parse_type(text)) for column, text in zip(columns, types, strict=True))
            return PartitionScheme((HashComponent((columns[0],), partitions, seed),), component, typed)

        same = scheme().affinity_group()
        assert scheme(columns=("u", "v")).affinity_group() == same
        assert scheme(name="january").affinity_group() == same
        different = [
            scheme(partitions=9),
            scheme(seed=1),
            scheme(types=("INTEGER", "DATE")),
            scheme(upper=date(2024, 1, 2)),
            scheme(types=("BIGINT", "TIMESTAMP"), upper=datetime(2024, 1, 1)),
            scheme(own=()),
            scheme(ordinal=1, retired=(RetiredRange(0, 8),)),
            PartitionScheme((HashComponent(("x",), 8),), types=types(x="BIGINT")),
            PartitionScheme((HashComponent(("x", "y"), 8),), types=types(x="BIGINT", y="BIGINT")),
            PartitionScheme((HashComponent(("x",), 8), HashComponent(("y",), 8)), types=types(x="BIGINT", y="BIGINT")),
            PartitionScheme(),
        ]
        assert len({same, *(other.affinity_group() for other in different)}) == 1 + len(different)

    def test_equal_instants_in_other_zone_objects_make_the_same_group(self) -> None:
        def scheme(at: datetime) -> PartitionScheme:
            return PartitionScheme(
                (), RangeComponent(("k",), (RangePartition(0, None, (at,)),)), types(k="TIMESTAMP WITH TIME ZONE")
            )

        assert (
            scheme(datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC"))).affinity_group()
            == scheme(datetime(2024, 1, 1, tzinfo=UTC)).affinity_group()
        )

    def test_which_column_is_used_where_counts(self) -> None:
        split = (RangePartition(0, None, (5,)), RangePartition(1, (5,), None))
        one = PartitionScheme(
            (HashComponent(("a", "b"), 4),), RangeComponent(("a",), split), types(a="BIGINT", b="BIGINT")
        )
        other = PartitionScheme(
            (HashComponent(("a", "b"), 4),), RangeComponent(("b",), split), types(a="BIGINT", b="BIGINT")
        )
        assert one.affinity_group() != other.affinity_group()

    def test_hash_only_groups_can_be_read(self) -> None:
        assert (
            TWO_HASHES.affinity_group()
            == "xxhash64/1 (BIGINT, VARCHAR, BIGINT) HASH (c0, c1) 4 SEED 0 HASH (c2) 3 SEED 7"
        )
        assert PartitionScheme().affinity_group() == "single"

    def test_an_unknown_function_is_kept_but_not_computed(self) -> None:
        scheme = decode(encode(replace(TWO_HASHES, function="murmur/3")), PartitionScheme)
        assert not scheme.is_known_function
        assert TWO_HASHES.is_known_function
        assert scheme.function == "murmur/3"
        assert scheme.partition_count == 12
        assert scheme.affinity_group() != TWO_HASHES.affinity_group()
        for call in (
            lambda: scheme.partition_of({"a": 1}),
            lambda: scheme.partitions_of(pa.table({"a": [1]})),
        ):
            with pytest.raises(NotSupportedError, match="partition function 'murmur/3' is unknown here"):
                call()

    def test_text_of_ranges(self) -> None:
        assert [str(r) for r in VARIED.ranges()] == ["VALUES < (0)", "(0) <= VALUES < (10)", "(20) <= VALUES < (30)"]
        assert str(RangePartition(0, (date(2024, 1, 1), "x"), None)) == "('2024-01-01', 'x') <= VALUES"
        assert str(RangePartition(0, None, None)) == "VALUES"
