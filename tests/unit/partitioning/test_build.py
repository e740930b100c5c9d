from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from secateur.errors import SchemeError
from secateur.partitioning.build import AddRange, DropRange, RangeChange, RangeSpec, alter_ranges, build_scheme, single_value, split_at
from secateur.partitioning.scheme import HashComponent, PartitionScheme, RangePartition, RetiredRange
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
    return build_scheme(hashes=hashes, range_columns=columns, ranges=ranges, types=TYPES, primary_key=KEY, table="metrics")


def alter(scheme: PartitionScheme, *changes: RangeChange) -> PartitionScheme:
    return alter_ranges(scheme, changes, types=TYPES, primary_key=KEY, table="metrics")


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
            columns=("day",), ranges=[RangeSpec(("2024-02-01",), ("2024-03-01",), "feb"), RangeSpec((date(2024, 1, 1),), (date(2024, 2, 1),), "jan")]
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
        scheme = build(HashComponent(("host",), 2), columns=("n",), ranges=[RangeSpec(None, (5,), hashes=own), RangeSpec((5,), None, hashes=())])
        assert scheme.hashes_of(0) == (HashComponent(("metric",), 8, 3),)
        assert scheme.hashes_of(1) == ()
        assert scheme.columns == ("Host", "n", "metric")
        assert scheme.partition_count == 9

    def test_a_column_may_stand_in_a_hash_and_in_the_range_component(self) -> None:
        assert build(HashComponent(("n",), 4), columns=("n",), ranges=split_at([(0,)])).columns == ("n",)


REFUSED = [
    pytest.param({"hashes": [HashComponent(("nope",), 2)]}, "component 1 names column nope, which the table lacks; it has Host, metric", id="unknown column"),
    pytest.param({"hashes": [HashComponent(("extra",), 2)]}, "names column extra, which is not in the primary key", id="not in the key"),
    pytest.param({"hashes": [HashComponent(("ratio",), 2)]}, "names column ratio of type DOUBLE, which cannot partition: .* use DECIMAL", id="double"),
    pytest.param({"hashes": [HashComponent(("single",), 2)]}, "names column single of type FLOAT, which cannot partition", id="float"),
    pytest.param({"hashes": [HashComponent(("huge",), 2)]}, r"of type HUGEINT, which cannot partition: use BIGINT, or DECIMAL\(38,0\)", id="hugeint"),
    pytest.param({"hashes": [HashComponent(("clock",), 2)]}, "of type TIME, which cannot partition: use an integer", id="time"),
    pytest.param({"hashes": [HashComponent(("tags",), 2)]}, r"of type VARCHAR\[\], which cannot partition", id="list"),
    pytest.param({"hashes": [HashComponent(("n",), 0)]}, "hash component 1 has 0 partitions; use 1 to 1000000", id="no buckets"),
    pytest.param({"hashes": [HashComponent(("n",), -1)]}, "hash component 1 has -1 partitions", id="negative buckets"),
    pytest.param({"hashes": [HashComponent(("n",), 1_000_001)]}, "hash component 1 has 1000001 partitions", id="too many buckets"),
    pytest.param({"hashes": [HashComponent(("n",), 1001), HashComponent(("day",), 1000)]}, "makes 1001000 partitions, .* the most is 1000000", id="product"),
    pytest.param({"hashes": [HashComponent(("n",), 2, 2**63)]}, "hash component 1 has seed 9223372036854775808; a seed is a BIGINT", id="seed"),
    pytest.param({"hashes": [HashComponent((), 2)]}, "hash component 1 names no column", id="no column"),
    pytest.param({"hashes": [HashComponent(("n", "N"), 2)]}, "hash component 1 name column n twice", id="twice in one"),
    pytest.param({"hashes": [HashComponent(("n",), 2), HashComponent(("day", "n"), 2)]}, "the hash components together name column n twice", id="twice in two"),
    pytest.param({"range_columns": ["ratio"], "ranges": split_at([(1.5,)])}, "the range component names column ratio of type DOUBLE", id="range on double"),
    pytest.param({"range_columns": ["n", "n"], "ranges": split_at([(1, 1)])}, "the range component name column n twice", id="range twice"),
    pytest.param({"range_columns": ["n"], "ranges": []}, "the range component has no ranges", id="no ranges"),
    pytest.param({"ranges": split_at([(1,)])}, "ranges without range columns", id="no range columns"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(1, 2)])}, r"the bound \(1, 2\) has 2 values; the range component has the columns n", id="arity"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(None,)])}, r"the bound \(None,\) has a NULL", id="null bound"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([("x",)])}, "a bound of the range component: column n: 'x' .* does not fit INTEGER", id="type"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(2**31,)])}, "does not fit INTEGER: the type holds -2147483648 to 2147483647", id="overflow"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec((5,), (5,))]}, r"the range \(5\) <= VALUES < \(5\) is empty", id="empty"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec((6,), (5,))]}, r"the range \(6\) <= VALUES < \(5\) is empty", id="reversed"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec((1,), (5,)), RangeSpec((4,), (9,))]}, r"\(1\) .* \(5\) and \(4\) .* overlap", id="overlap"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec(None, (5,)), RangeSpec(None, (9,))]}, "overlap", id="both open below"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec((1,), None), RangeSpec((9,), None)]}, "overlap", id="both open above"),
    pytest.param({"range_columns": ["n"], "ranges": [single_value((5,)), RangeSpec((5,), (6,))]}, "overlap", id="a point inside a range"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(5,), (5,)])}, "is empty", id="equal splits"),
    pytest.param({"range_columns": ["n"], "ranges": split_at([(5,), (1,)])}, "is empty", id="descending splits"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec((1,), (2,), "P"), RangeSpec((2,), (3,), "p")]}, "two ranges are named p", id="names"),
    pytest.param({"range_columns": ["n"], "ranges": [RangeSpec(is_point=True)]}, "a single-value range needs its value", id="no value"),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec(hashes=(HashComponent(("ratio",), 2),))]}, "column ratio of type DOUBLE", id="own hash of a double"
    ),
    pytest.param(
        {"range_columns": ["n"], "ranges": [RangeSpec(hashes=(HashComponent(("n",), 0),))]}, "component 1 has 0 partitions", id="own hash, no buckets"
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemeError, match=message) as raised:
        build_scheme(types=TYPES, primary_key=KEY, table="metrics", **arguments)
    assert str(raised.value).startswith("table metrics: ")
    assert raised.value.details == {"table": "metrics"}


class TestAlter:
    MONTHS = build(
        HashComponent(("Host",), 4),
        columns=("n",),
        ranges=[RangeSpec((0,), (10,), "a"), RangeSpec((10,), (20,), "b", (HashComponent(("Host",), 8),)), RangeSpec((20,), (30,))],
    )

    def ids(self, scheme: PartitionScheme) -> dict[int, int]:
        return {n: scheme.partition_of({"Host": "h", "n": n}) for n in range(0, 100, 5) if scheme.range_position((n,)) >= 0}

    def test_adding_and_dropping_moves_no_other_partition(self) -> None:
        before = self.ids(self.MONTHS)
        changed = alter(self.MONTHS, DropRange(RangeSpec(name="B")), AddRange(RangeSpec((30,), (40,))), AddRange(RangeSpec((12,), (15,), "b", ())))
        after = self.ids(changed)
        assert {n: after[n] for n in (0, 5, 20, 25)} == {n: before[n] for n in (0, 5, 20, 25)}
        assert changed.range is not None
        assert changed.range.retired == (RetiredRange(1, 8),)
        assert [(r.ordinal, r.lower) for r in changed.ranges()] == [(0, (0,)), (4, (12,)), (2, (20,)), (3, (30,))]
        # Blocks: 0-3 for a, 4-11 reserved, 12-15, 16-19 for the first added, 20 for the second.
        assert changed.block(3) == range(16, 20)
        assert changed.block(4) == range(20, 21)
        assert (changed.partition_count, changed.live_partition_count) == (21, 13)

    def test_a_range_that_comes_back_gets_new_ids(self) -> None:
        back = alter(self.MONTHS, DropRange(RangeSpec((20,), (30,))), AddRange(RangeSpec((20,), (30,))))
        assert self.ids(back)[20] == self.ids(self.MONTHS)[20] + 4
        assert back.affinity_group() != self.MONTHS.affinity_group()

    def test_dropping_all_ranges_leaves_a_table_that_holds_nothing(self) -> None:
        empty = alter(self.MONTHS, DropRange(RangeSpec(name="a")), DropRange(RangeSpec(name="b")), DropRange(RangeSpec((20,), (30,))))
        assert (empty.partition_count, empty.live_partition_count, empty.live_partitions().tolist()) == (16, 0, [])
        again = alter(empty, AddRange(RangeSpec((0,), (10,))))
        assert again.block(3) == range(16, 20)

    def test_dropping_by_value(self) -> None:
        scheme = build(columns=("n",), ranges=[single_value((7,))])
        assert alter(scheme, DropRange(single_value((7,)))).ranges() == ()

    def test_types_of_new_own_columns_are_kept(self) -> None:
        changed = alter(self.MONTHS, AddRange(RangeSpec((30,), None, hashes=(HashComponent(("day",), 2),))))
        assert dict(changed.types) == {"Host": TYPES["Host"], "n": TYPES["n"], "day": TYPES["day"]}

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            pytest.param([DropRange(RangeSpec(name="zzz"))], r"no range named zzz; it has a: \(0\) <= VALUES < \(10\), b: .*, \(20\) <=", id="unknown name"),
            pytest.param([DropRange(RangeSpec((0,), (9,)))], r"no range with exactly the bounds \(0\) <= VALUES < \(9\)", id="upper differs"),
            pytest.param([DropRange(RangeSpec((1,), (10,)))], "no range with exactly the bounds", id="lower differs"),
            pytest.param([DropRange(RangeSpec((0,), None))], "no range with exactly the bounds", id="only one bound"),
            pytest.param([DropRange(RangeSpec((0,), (20,)))], "no range with exactly the bounds", id="two ranges at once"),
            pytest.param([AddRange(RangeSpec((25,), (35,)))], "overlap", id="overlap"),
            pytest.param([AddRange(RangeSpec((40,), (50,), "A"))], "two ranges are named a", id="name taken"),
            pytest.param([AddRange(RangeSpec((50,), (40,)))], "is empty", id="empty"),
            pytest.param([DropRange(RangeSpec(name="a")), DropRange(RangeSpec(name="a"))], "no range named a", id="the same twice"),
            pytest.param([AddRange(RangeSpec((30,), None, hashes=(HashComponent(("n",), 999_999),)))], "the most is 1000000", id="too many"),
        ],
    )
    def test_refused(self, changes: list[RangeChange], message: str) -> None:
        with pytest.raises(SchemeError, match=message):
            alter(self.MONTHS, *changes)

    def test_a_table_without_a_range_component(self) -> None:
        with pytest.raises(SchemeError, match="it has no range component"):
            alter(build(HashComponent(("n",), 2)), AddRange(RangeSpec((1,), (2,))))
