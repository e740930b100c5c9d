from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import SchemeError
from secateur.partitioning.schemes import (
    AddRange,
    DropNamed,
    DropRange,
    HashComponent,
    PartitionScheme,
    RangeChange,
    RangeSpec,
    RetiredRange,
    alter_ranges,
    build_scheme,
    catch_all,
    single_value,
)
from secateur.partitioning.types import parse_type

TYPES = {name: parse_type(text) for name, text in {"Host": "VARCHAR", "day": "DATE", "n": "INTEGER"}.items()}
KEY = list(TYPES)


def build(*hashes: HashComponent, columns: tuple[str, ...] = (), ranges: Any = ()) -> PartitionScheme:
    return build_scheme(
        hashes=hashes, range_columns=columns, ranges=ranges, types=TYPES, primary_key=KEY, table="metrics"
    )


MONTHS = build(
    HashComponent(("Host",), 4),
    columns=("n",),
    ranges=[
        RangeSpec((0,), (10,), "a"),
        RangeSpec((10,), (20,), "b", (HashComponent(("Host",), 8),)),
        RangeSpec((20,), (30,)),
    ],
)


def alter(scheme: PartitionScheme, *changes: RangeChange) -> PartitionScheme:
    return alter_ranges(scheme, changes, types=TYPES, primary_key=KEY, table="metrics")


def ids(scheme: PartitionScheme) -> dict[int, int]:
    return {n: scheme.partition_of({"Host": "h", "n": n}) for n in range(0, 100, 5) if scheme.range_position((n,)) >= 0}


def test_adding_and_dropping_moves_no_other_partition() -> None:
    before = ids(MONTHS)
    changed = alter(
        MONTHS, DropNamed("B"), AddRange(RangeSpec((30,), (40,))), AddRange(RangeSpec((12,), (15,), "b", ()))
    )
    after = ids(changed)
    assert {n: after[n] for n in (0, 5, 20, 25)} == {n: before[n] for n in (0, 5, 20, 25)}
    assert changed.range is not None
    assert changed.range.retired == (RetiredRange(1, 8),)
    assert [(r.ordinal, r.lower) for r in changed.ranges()] == [(0, (0,)), (4, (12,)), (2, (20,)), (3, (30,))]
    # Blocks: 0-3 for a, 4-11 reserved, 12-15, 16-19 for the first added, 20 for the second.
    assert changed.block(3) == range(16, 20)
    assert changed.block(4) == range(20, 21)
    assert (changed.partition_count, changed.live_partition_count) == (21, 13)


def test_a_range_that_comes_back_gets_new_ids() -> None:
    back = alter(MONTHS, DropRange(RangeSpec((20,), (30,))), AddRange(RangeSpec((20,), (30,))))
    assert ids(back)[20] == ids(MONTHS)[20] + 4
    assert back.affinity_group() != MONTHS.affinity_group()


def test_dropping_all_ranges_leaves_a_table_that_holds_nothing() -> None:
    empty = alter(MONTHS, DropNamed("a"), DropNamed("b"), DropRange(RangeSpec((20,), (30,))))
    assert (empty.partition_count, empty.live_partition_count, empty.live_partitions().tolist()) == (16, 0, [])
    again = alter(empty, AddRange(RangeSpec((0,), (10,))))
    assert again.block(3) == range(16, 20)


def test_dropping_by_value() -> None:
    scheme = build(columns=("n",), ranges=[single_value((7,))])
    assert alter(scheme, DropRange(single_value((7,)))).ranges() == ()


def test_types_of_new_own_columns_are_kept() -> None:
    changed = alter(MONTHS, AddRange(RangeSpec((30,), None, hashes=(HashComponent(("day",), 2),))))
    assert dict(changed.types) == {"Host": TYPES["Host"], "n": TYPES["n"], "day": TYPES["day"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            [DropNamed("zzz")],
            r"no range named zzz; it has a: \(0\) <= VALUES < \(10\), b: .*, \(20\) <=",
            id="unknown name",
        ),
        pytest.param(
            [DropRange(RangeSpec((0,), (9,)))],
            r"no range with exactly the bounds \(0\) <= VALUES < \(9\)",
            id="upper differs",
        ),
        pytest.param([DropRange(RangeSpec((1,), (10,)))], "no range with exactly the bounds", id="lower differs"),
        pytest.param([DropRange(RangeSpec((0,), None))], "no range with exactly the bounds", id="only one bound"),
        pytest.param([DropRange(RangeSpec((0,), (20,)))], "no range with exactly the bounds", id="two ranges at once"),
        pytest.param(
            [DropRange(RangeSpec((0,), (10,), "b"))],
            "is named a, not b; nothing was dropped",
            id="bounds of one and name of another",
        ),
        pytest.param(
            [DropRange(RangeSpec(None, None, "a"))],
            "no range with exactly the bounds VALUES",
            id="name of a range with other bounds",
        ),
        pytest.param(
            [DropRange(RangeSpec((10,), (20,), hashes=()))], "has other hash components", id="other hash components"
        ),
        pytest.param([DropRange(catch_all())], "no DEFAULT PARTITION", id="no catch-all"),
        pytest.param(
            [AddRange(catch_all()), AddRange(catch_all())], "has a DEFAULT PARTITION already", id="two catch-alls"
        ),
        pytest.param([AddRange(catch_all("A"))], "two ranges are named a", id="catch-all with a taken name"),
        pytest.param([AddRange(RangeSpec((25,), (35,)))], "overlap", id="overlap"),
        pytest.param([AddRange(RangeSpec((40,), (50,), "A"))], "two ranges are named a", id="name taken"),
        pytest.param([AddRange(RangeSpec((50,), (40,)))], "is empty", id="empty"),
        pytest.param([DropNamed("a"), DropNamed("a")], "no range named a", id="the same twice"),
        pytest.param(
            [AddRange(RangeSpec((30,), None, hashes=(HashComponent(("n",), 999_999),)))],
            "the most is 1000000",
            id="too many",
        ),
    ],
)
def test_refused(changes: list[RangeChange], message: str) -> None:
    with pytest.raises(SchemeError, match=message):
        alter(MONTHS, *changes)


def test_a_table_without_a_range_component() -> None:
    with pytest.raises(SchemeError, match="it has no range component"):
        alter(build(HashComponent(("n",), 2)), AddRange(RangeSpec((1,), (2,))))


def test_a_catch_all_comes_and_goes_and_moves_nothing() -> None:
    with_rest = alter(MONTHS, AddRange(catch_all("rest")))
    assert {n: with_rest.partition_of({"Host": "h", "n": n}) for n in (0, 15, 25)} == {
        n: MONTHS.partition_of({"Host": "h", "n": n}) for n in (0, 15, 25)
    }
    assert with_rest.block(3) == range(16, 20)
    assert with_rest.partition_of({"Host": "h", "n": 99}) in with_rest.block(3)
    more = alter(with_rest, AddRange(RangeSpec((30,), (40,))), DropNamed("a"))
    assert [(r.ordinal, r.lower, r.upper) for r in more.ranges()] == [
        (3, None, (10,)),
        (1, (10,), (20,)),
        (2, (20,), (30,)),
        (4, (30,), (40,)),
        (3, (40,), None),
    ]
    for change in (DropNamed("REST"), DropRange(catch_all()), DropRange(catch_all("rest"))):
        without = alter(more, change)
        assert [r.ordinal for r in without.ranges()] == [1, 2, 4]
        assert without.range is not None
        assert without.range.retired == (RetiredRange(0, 4), RetiredRange(3, 4))
        assert without.has_gaps


def test_bounds_with_name_and_hash_components_drop_the_range_that_has_them_all() -> None:
    own = (HashComponent(("Host",), 8),)
    assert [r.name for r in alter(MONTHS, DropRange(RangeSpec((10,), (20,), "B", own))).ranges()] == ["a", None]
