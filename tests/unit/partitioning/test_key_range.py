"""Cuts and ranges of keys."""

from __future__ import annotations

from itertools import product

import pytest

from secateur.partitioning.pruning import (
    EVERY_KEY,
    KeyBoundary,
    KeyPrefix,
    KeyRange,
    KeyRanges,
    KeySlice,
    intersect_ranges,
    unite_ranges,
)
from secateur.protocol import decode, encode

KEYS = [(a, b) for a in range(4) for b in range(4)]
CUTS = [KeyBoundary(values, after) for values in [(), *((a,) for a in range(4)), *KEYS] for after in (False, True)]


def is_below(key: tuple[int, int], cut: KeyBoundary) -> bool:
    """Whether a key stands before a cut, by the definition in words."""
    head = key[: len(cut.values)]
    return head < cut.values or (head == cut.values and cut.after)


def holds(span: KeyRange, key: tuple[int, int]) -> bool:
    return not is_below(key, span.lower) and is_below(key, span.upper)


def before(*values: int) -> KeyBoundary:
    return KeyBoundary(values, after=False)


def after(*values: int) -> KeyBoundary:
    return KeyBoundary(values, after=True)


ORDERED = [
    before(),
    before(1),
    before(1, 1),
    after(1, 1),
    before(1, 2),
    after(1, 2),
    after(1),
    before(2),
    after(2),
    after(),
]


def test_the_order_of_cuts() -> None:
    assert sorted([*ORDERED[5:], *ORDERED[:5]], key=lambda cut: cut.order) == ORDERED


def test_a_cut_that_precedes_another_has_no_more_keys_below_it() -> None:
    for first, second in product(CUTS, CUTS):
        if first.order <= second.order:
            assert all(is_below(key, second) for key in KEYS if is_below(key, first)), (first, second)


SPANS = [
    KeyRange(low, high)
    for low, high in product([before(), before(1), after(1), before(1, 2), after(1, 2), before(2)], repeat=2)
] + [
    KeyRange.of_prefix((1,)),
    KeyRange.of_prefix((1, 2)),
    KeyRange(after(1), after()),
    EVERY_KEY,
]


def is_canonical(found: KeyRanges) -> bool:
    ends = [end.order for span in found.ranges for end in (span.lower, span.upper)]
    return ends == sorted(set(ends))


def test_union_and_intersection_hold_the_keys_they_should() -> None:
    for first, second in product(SPANS, SPANS):
        united = unite_ranges([second, first])
        assert is_canonical(united)
        assert [key for key in KEYS if any(holds(span, key) for span in united.ranges)] == [
            key for key in KEYS if holds(first, key) or holds(second, key)
        ]
        met = intersect_ranges(unite_ranges([first]), unite_ranges([second]))
        assert is_canonical(met)
        assert [key for key in KEYS if any(holds(span, key) for span in met.ranges)] == [
            key for key in KEYS if holds(first, key) and holds(second, key)
        ]


def test_the_intersection_of_several_ranges() -> None:
    left = unite_ranges([KeyRange(before(0), before(2)), KeyRange(before(3), after(5))])
    right = unite_ranges([KeyRange(after(1), before(4)), KeyRange.of_prefix((5, 5)), KeyRange(before(7), after())])
    assert intersect_ranges(left, right).ranges == (
        KeyRange(after(1), before(2)),
        KeyRange(before(3), before(4)),
        KeyRange.of_prefix((5, 5)),
    )


def test_ranges_that_touch_become_one() -> None:
    assert unite_ranges([KeyRange(after(1), before(2)), KeyRange.of_prefix((1,))]).ranges == (
        KeyRange(before(1), before(2)),
    )
    assert len(unite_ranges([KeyRange(after(1), before(2)), KeyRange(before(1), before(1, 9))]).ranges) == 2


def test_no_range_holds_no_key() -> None:
    assert unite_ranges([KeyRange(before(2), before(1)), KeyRange(after(1), after(1))]).ranges == ()


@pytest.mark.parametrize(
    "found", [KeyRanges(()), unite_ranges(SPANS[:7]), KeyRanges((EVERY_KEY,))], ids=["none", "some", "all"]
)
def test_wire(found: KeyRanges) -> None:
    assert decode(encode(found), KeyRanges) == found


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(None, id="all"),
        pytest.param(KeyPrefix((1, "a")), id="prefix"),
        pytest.param(
            KeyRanges((KeyRange.of_prefix((1,)), KeyRange(KeyBoundary((3,), after=True), KeyBoundary((), after=True)))),
            id="ranges",
        ),
    ],
)
def test_a_slice_travels(part: KeyPrefix | KeyRanges | None) -> None:
    assert decode(encode(part), KeySlice | None) == part
