from __future__ import annotations

import sys
import threading

import pytest
from msgspec.structs import replace

from secateur.errors import UnknownRangesError
from secateur.partitioning.schemes import PartitionScheme, RangeComponent, RangePartition
from secateur.partitioning.schemes.partial_ranges import ANSWER_PAGES_MAX, EVERY_KEY, PAGE_RANGES, KeyInterval
from secateur.partitioning.schemes.scheme import learn_ranges
from secateur.partitioning.types import parse_type
from secateur.protocol import RangePages, encode

FEW, MANY = 100, 100_000


def ranged(ranges: int, *, dropped: int | None = None) -> PartitionScheme:
    """Ranges of ten keys each."""
    parts = tuple(RangePartition(n, (10 * n,), (10 * n + 10,)) for n in range(ranges) if n != dropped)
    return PartitionScheme((), RangeComponent(("k",), parts), (("k", parse_type("BIGINT")),))


def key(value: int) -> KeyInterval:
    return KeyInterval((value,), (value,))


def test_what_is_sent_for_a_key_does_not_grow_with_the_ranges() -> None:
    scheme = ranged(MANY)
    sent = len(encode(RangePages(scheme.pages([key(500_007)])))) + len(encode(scheme.outline()))
    assert sent < 50 * PAGE_RANGES
    assert sent < 4 * (len(encode(RangePages(ranged(FEW).pages([key(507)])))) + len(encode(ranged(FEW).outline())))


def test_a_page_covers_the_gaps_around_its_ranges() -> None:
    scheme = ranged(4 * PAGE_RANGES, dropped=PAGE_RANGES)
    (page,) = scheme.pages([key(10 * PAGE_RANGES + 5)])
    assert page.keys == KeyInterval((10 * PAGE_RANGES,), (10 * (2 * PAGE_RANGES + 1),))
    (before,) = scheme.pages([key(-1)])
    assert before.keys == KeyInterval(None, (10 * (PAGE_RANGES + 1),))
    (behind,) = scheme.pages([key(10**9)])
    assert behind.keys.upper is None


def test_an_answer_is_bounded_and_the_rest_is_asked_for_again() -> None:
    scheme = ranged(MANY)
    (page,) = scheme.pages([EVERY_KEY])
    assert len(page.columns.ranges(())) == ANSWER_PAGES_MAX * PAGE_RANGES
    partial = scheme.outline().partial
    assert partial is not None
    known = partial.with_pages([page])
    assert known.unknown == (KeyInterval((10 * ANSWER_PAGES_MAX * PAGE_RANGES,), None),)
    (rest,) = scheme.pages(known.unknown)
    assert known.with_pages([rest]).unknown[0].lower > known.unknown[0].lower  # type: ignore[operator]


def test_a_table_without_ranges_is_known_after_one_page() -> None:
    partial = ranged(0).outline().partial
    assert partial is not None
    assert partial.with_pages(ranged(0).pages([key(5)])).unknown == ()


def test_pages_that_bring_nothing_new_are_no_progress() -> None:
    scheme = ranged(MANY).referred("test_partial_ranges/no progress")
    outline = replace(scheme.outline(), reference="test_partial_ranges/1")
    with pytest.raises(UnknownRangesError) as raised:
        outline.partition_of({"k": 57})
    assert raised.value.details == {"reference": "test_partial_ranges/1", "wanted": [key(57)]}
    pages = scheme.pages([key(57)])
    assert learn_ranges("test_partial_ranges/1", pages)
    assert not learn_ranges("test_partial_ranges/1", pages)
    assert outline.newest().partition_of({"k": 57}) == 5
    assert not learn_ranges("test_partial_ranges/nobody", pages)


def test_schemes_that_threads_make_at_once_learn_the_same() -> None:
    scheme, threads, rounds = ranged(FEW), 4, 2000
    outline, page = scheme.outline(), scheme.pages([key(57)])
    made: list[list[PartitionScheme]] = [[] for _ in range(rounds)]
    barrier, before = threading.Barrier(threads), sys.getswitchinterval()

    def make() -> None:
        for number, schemes in enumerate(made):
            barrier.wait()
            schemes.append(replace(outline, reference=f"at once/{number}"))

    makers = [threading.Thread(target=make) for _ in range(threads)]
    sys.setswitchinterval(1e-7)
    try:
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
    finally:
        sys.setswitchinterval(before)
    for number, schemes in enumerate(made):
        assert learn_ranges(f"at once/{number}", page)
        assert [one.newest().partition_of({"k": 57}) for one in schemes] == [5] * threads
