from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from secateur.errors import SchemeError
from secateur.partitioning.schemes import (
    HashComponent,
    PartitionScheme,
    RangePartition,
    RangeSpec,
    build_scheme,
    catch_all,
    single_value,
    split_at,
)
from secateur.partitioning.types import parse_type

TYPES = {
    name: parse_type(text)
    for name, text in {
        "Host": "VARCHAR",
        "metric": "VARCHAR",
        "day": "DATE",
        "n": "INTEGER",
        "flag": "BOOLEAN",
        "price": "DECIMAL(10,2)",
        "ratio": "DOUBLE",
        "single": "FLOAT",
        "huge": "HUGEINT",
        "clock": "TIME",
        "tags": "VARCHAR[]",
        "extra": "BIGINT",
    }.items()
}
KEY = [name for name in TYPES if name != "extra"]


def build(*hashes: HashComponent, columns: tuple[str, ...] = (), ranges: Any = ()) -> PartitionScheme:
    return build_scheme(
        hashes=hashes, range_columns=columns, ranges=ranges, types=TYPES, primary_key=KEY, table="metrics"
    )


class TestBuild:
    def test_no_components(self) -> None:
        assert build() == PartitionScheme()

    def test_the_machine_metrics_table_of_the_kudu_design(self) -> None:
        scheme = build(HashComponent(("host", "METRIC"), 2), columns=("n",), ranges=split_at([(1451606400,)]))
        assert scheme.hashes == (HashComponent(("Host", "metric"), 2),)
        assert scheme.types == (("Host", TYPES["Host"]), ("metric", TYPES["metric"]), ("n", TYPES["n"]))
        assert scheme.ranges() == (RangePartition(0, None, (1451606400,)), RangePartition(1, (1451606400,), None))
        assert scheme.partition_count == 4

    def test_ordinals_are_positions_after_sorting_and_bounds_are_canonical(self) -> None:
        scheme = build(
            columns=("day",),
            ranges=[
                RangeSpec(("2024-02-01",), ("2024-03-01",), "feb"),
                RangeSpec((date(2024, 1, 1),), (date(2024, 2, 1),), "jan"),
            ],
        )
        assert scheme.ranges() == (
            RangePartition(0, (date(2024, 1, 1),), (date(2024, 2, 1),), "jan"),
            RangePartition(1, (date(2024, 2, 1),), (date(2024, 3, 1),), "feb"),
        )

    def test_split_at_covers_everything(self) -> None:
        assert split_at([(1,), (5,)]) == (RangeSpec(None, (1,)), RangeSpec((1,), (5,)), RangeSpec((5,), None))
        assert split_at([]) == (RangeSpec(None, None),)

    @pytest.mark.parametrize(
        ("column", "value", "lower", "upper"),
        [
            ("n", 9, 9, 10),
            ("n", 2**31 - 1, 2**31 - 1, None),
            ("Host", "a", "a", "a\0"),
            ("day", "2024-12-31", date(2024, 12, 31), date(2025, 1, 1)),
            ("flag", False, False, True),
            ("flag", True, True, None),
            ("price", "1.99", Decimal("1.99"), Decimal("2.00")),
        ],
    )
    def test_single_values(self, column: str, value: Any, lower: Any, upper: Any) -> None:
        (found,) = build(columns=(column,), ranges=[single_value((value,), "only")]).ranges()
        assert found == RangePartition(0, (lower,), None if upper is None else (upper,), "only")

    def test_a_single_value_at_the_maximum_carries_into_the_column_before(self) -> None:
        (found,) = build(columns=("n", "flag"), ranges=[single_value((9, True))]).ranges()
        assert (found.lower, found.upper) == ((9, True), (10, False))

    def test_own_hash_components_are_resolved_too(self) -> None:
        own = (HashComponent(("METRIC",), 8, 3),)
        scheme = build(
            HashComponent(("host",), 2),
            columns=("n",),
            ranges=[RangeSpec(None, (5,), hashes=own), RangeSpec((5,), None, hashes=())],
        )
        assert scheme.hashes_of(0) == (HashComponent(("metric",), 8, 3),)
        assert scheme.hashes_of(1) == ()
        assert scheme.columns == ("Host", "n", "metric")
        assert scheme.partition_count == 9

    def test_a_column_may_stand_in_a_hash_and_in_the_range_component(self) -> None:
        assert build(HashComponent(("n",), 4), columns=("n",), ranges=split_at([(0,)])).columns == ("n",)

    def test_the_catch_all_stands_behind_the_ranges_and_fills_their_gaps(self) -> None:
        scheme = build(
            HashComponent(("Host",), 2),
            columns=("n",),
            ranges=[catch_all("rest", ()), RangeSpec((20,), (30,)), RangeSpec((0,), (10,))],
        )
        assert [(r.ordinal, r.lower, r.upper) for r in scheme.ranges()] == [
            (2, None, (0,)),
            (0, (0,), (10,)),
            (2, (10,), (20,)),
            (1, (20,), (30,)),
            (2, (30,), None),
        ]
        assert (scheme.block(0), scheme.block(1), scheme.block(2)) == (range(2), range(2, 4), range(4, 5))
        assert [scheme.partition_of({"Host": "h", "n": n}) >= 4 for n in (-1, 0, 9, 10, 19, 20, 29, 30)] == [
            True,
            False,
            False,
            True,
            True,
            False,
            False,
            True,
        ]
        assert not scheme.has_gaps


REFUSED = [
    pytest.param(
        {"range_columns": ["n"], "ranges": [catch_all(), catch_all()]}, "two DEFAULT PARTITIONs", id="two catch-alls"
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [catch_all("P"), RangeSpec((1,), (2,), "p")]},
        "two ranges are named p",
        id="name of the catch-all",
    ),
    pytest.param(
        {"hashes": [HashComponent(("nope",), 2)]},
        "component 1 names column nope, which the table lacks; it has Host, metric",
        id="unknown column",
    ),
    pytest.param(
        {"hashes": [HashComponent(("extra",), 2)]},
        "names column extra, which is not in the primary key",
        id="not in the key",
    ),
    pytest.param(
        {"hashes": [HashComponent(("ratio",), 2)]},
        "names column ratio of type DOUBLE, which cannot partition: .* use DECIMAL",
        id="double",
    ),
    pytest.param(
        {"hashes": [HashComponent(("single",), 2)]},
        "names column single of type FLOAT, which cannot partition",
        id="float",
    ),
    pytest.param(
        {"hashes": [HashComponent(("huge",), 2)]},
        r"of type HUGEINT, which cannot partition: use BIGINT, or DECIMAL\(38,0\)",
        id="hugeint",
    ),
    pytest.param(
        {"hashes": [HashComponent(("clock",), 2)]}, "of type TIME, which cannot partition: use an integer", id="time"
    ),
    pytest.param({"hashes": [HashComponent(("tags",), 2)]}, r"of type VARCHAR\[\], which cannot partition", id="list"),
    pytest.param(
        {"hashes": [HashComponent(("n",), 0)]}, "hash component 1 has 0 partitions; use 1 to 1000000", id="no buckets"
    ),
    pytest.param({"hashes": [HashComponent(("n",), -1)]}, "hash component 1 has -1 partitions", id="negative buckets"),
    pytest.param(
        {"hashes": [HashComponent(("n",), 1_000_001)]}, "hash component 1 has 1000001 partitions", id="too many buckets"
    ),
    pytest.param(
        {"hashes": [HashComponent(("n",), 1001), HashComponent(("day",), 1000)]},
        "makes 1001000 partitions, .* the most is 1000000",
        id="product",
    ),
    pytest.param(
        {"hashes": [HashComponent(("n",), 2, 2**63)]},
        "hash component 1 has seed 9223372036854775808; a seed is a BIGINT",
        id="seed",
    ),
    pytest.param({"hashes": [HashComponent((), 2)]}, "hash component 1 names no column", id="no column"),
    pytest.param({"hashes": [HashComponent(("n", "N"), 2)]}, "hash component 1 name column n twice", id="twice in one"),
    pytest.param(
        {"hashes": [HashComponent(("n",), 2), HashComponent(("day", "n"), 2)]},
        "the hash components together name column n twice",
        id="twice in two",
    ),
    pytest.param(
        {"range_columns": ["ratio"], "ranges": split_at([(1.5,)])},
        "the range component names column ratio of type DOUBLE",
        id="range on double",
    ),
    pytest.param(
        {"range_columns": ["n", "n"], "ranges": split_at([(1, 1)])},
        "the range component name column n twice",
        id="range twice",
    ),
    pytest.param({"range_columns": ["n"], "ranges": []}, "the range component has no ranges", id="no ranges"),
    pytest.param({"ranges": split_at([(1,)])}, "ranges without range columns", id="no range columns"),
    pytest.param(
        {"range_columns": ["n"], "ranges": split_at([(1, 2)])},
        r"the bound \(1, 2\) has 2 values; the range component has the columns n",
        id="arity",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": split_at([(None,)])}, r"the bound \(None,\) has a NULL", id="null bound"
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": split_at([("x",)])},
        "a bound of the range component: column n: 'x' .* does not fit INTEGER",
        id="type",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": split_at([(2**31,)])},
        "does not fit INTEGER: the type holds -2147483648 to 2147483647",
        id="overflow",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec((5,), (5,))]},
        r"the range \(5\) <= VALUES < \(5\) is empty",
        id="empty",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec((6,), (5,))]},
        r"the range \(6\) <= VALUES < \(5\) is empty",
        id="reversed",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec((1,), (5,)), RangeSpec((4,), (9,))]},
        r"\(1\) .* \(5\) and \(4\) .* overlap",
        id="overlap",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec(None, (5,)), RangeSpec(None, (9,))]},
        "overlap",
        id="both open below",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec((1,), None), RangeSpec((9,), None)]},
        "overlap",
        id="both open above",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [single_value((5,)), RangeSpec((5,), (6,))]},
        "overlap",
        id="a point inside a range",
    ),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(5,), (5,)])}, "is empty", id="equal splits"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(5,), (1,)])}, "is empty", id="descending splits"),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec((1,), (2,), "P"), RangeSpec((2,), (3,), "p")]},
        "two ranges are named p",
        id="names",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec(is_point=True)]},
        "a single-value range needs its value",
        id="no value",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec(hashes=(HashComponent(("ratio",), 2),))]},
        "column ratio of type DOUBLE",
        id="own hash of a double",
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec(hashes=(HashComponent(("n",), 0),))]},
        "component 1 has 0 partitions",
        id="own hash, no buckets",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemeError, match=message) as raised:
        build_scheme(types=TYPES, primary_key=KEY, table="metrics", **arguments)
    assert str(raised.value).startswith("table metrics: ")
    assert raised.value.details == {"table": "metrics"}
