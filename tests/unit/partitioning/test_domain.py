from __future__ import annotations

import itertools
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from secateur.partitioning.pruning import EVERYTHING, NOTHING, Domain, Span, close_spans, enumerate_points, points
from secateur.partitioning.types import parse_type

DOMAINS = {
    "nothing": NOTHING,
    "everything": EVERYTHING,
    "points": points([1, 4, 7]),
    "closed": Domain(spans=(Span(2, 5),)),
    "open": Domain(spans=(Span(2, 5, lower_closed=False, upper_closed=False),)),
    "below": Domain(spans=(Span(upper=3, upper_closed=False),)),
    "above": Domain(spans=(Span(lower=6),)),
    "mixed": Domain(frozenset({0, 6}), (Span(3, 4), Span(lower=8, lower_closed=False))),
}
VALUES = range(-1, 12)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(DOMAINS, DOMAINS)))
def test_intersection_and_union_are_those_of_the_members(left: str, right: str) -> None:
    a, b = DOMAINS[left], DOMAINS[right]
    both, either = a.intersect(b), a.unite(b)
    for value in VALUES:
        assert (value in both) == (value in a and value in b)
        assert (value in either) == (value in a or value in b)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(Span(1, 5), Span(5, 9), Span(5, 5), id="closed ends that touch meet"),
        pytest.param(Span(1, 5, upper_closed=False), Span(5, 9), None, id="an open end does not"),
        pytest.param(Span(), Span(3, 4), Span(3, 4), id="unbounded gives way"),
        pytest.param(Span(lower=3), Span(upper=2), None, id="apart"),
        pytest.param(
            Span(1, 5, lower_closed=False),
            Span(1, 5, upper_closed=False),
            Span(1, 5, False, False),
            id="the narrower of equal bounds",
        ),
    ],
)
def test_spans_intersect(left: Span, right: Span, expected: Span | None) -> None:
    met = left.intersect(right)
    assert met.is_empty if expected is None else met == expected


@pytest.mark.parametrize(
    ("type_text", "domain", "expected"),
    [
        pytest.param("INTEGER", Domain(spans=(Span(3, 6, lower_closed=False),)), {4, 5, 6}, id="integers"),
        pytest.param("INTEGER", Domain(frozenset({1}), (Span(3, 4),)), {1, 3, 4}, id="points and spans"),
        pytest.param(
            "TINYINT", Domain(spans=(Span(upper=-126),)), {-128, -127, -126}, id="the type ends a half-bounded span"
        ),
        pytest.param(
            "TINYINT",
            Domain(spans=(Span(lower=126, upper=1000),)),
            {126, 127},
            id="the type ends a span that leaves it",
        ),
        pytest.param("BOOLEAN", EVERYTHING, {False, True}, id="booleans"),
        pytest.param(
            "DATE",
            Domain(spans=(Span(date(2024, 2, 28), date(2024, 3, 1)),)),
            {date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)},
            id="dates",
        ),
        pytest.param("DATE", Domain(spans=(Span(upper=date(2024, 1, 1)),)), None, id="a half-bounded span of dates"),
        pytest.param(
            "DECIMAL(5,2)",
            Domain(spans=(Span(Decimal("1.00"), Decimal("1.02")),)),
            {Decimal("1.00"), Decimal("1.01"), Decimal("1.02")},
            id="decimals",
        ),
        pytest.param("VARCHAR", Domain(spans=(Span("a", "b"),)), None, id="texts cannot be counted"),
        pytest.param("VARCHAR", points(["a"]), {"a"}, id="points of any type"),
        pytest.param("BIGINT", Domain(spans=(Span(0, 11),)), None, id="more than worth it"),
        pytest.param("INTEGER", points(range(12)), None, id="more points than worth it"),
    ],
)
def test_points_are_enumerated(type_text: str, domain: Domain, expected: set[object] | None) -> None:
    found = enumerate_points(domain, parse_type(type_text), 10)
    assert found == (None if expected is None else frozenset(expected))


@pytest.mark.parametrize(
    ("type_text", "span", "expected"),
    [
        pytest.param("BIGINT", Span(3, 5, False, False), points([4]), id="between two neighbours but one"),
        pytest.param("BIGINT", Span(3, 4, False, False), NOTHING, id="between two neighbours"),
        pytest.param(
            "DATE",
            Span(lower=date(2024, 1, 1), lower_closed=False),
            Domain(spans=(Span(lower=date(2024, 1, 2)),)),
            id="half-bounded",
        ),
        pytest.param(
            "TIMESTAMP",
            Span(datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1), False, False),
            NOTHING,
            id="microseconds",
        ),
        pytest.param("UUID", Span(UUID(int=1), UUID(int=3), False, False), points([UUID(int=2)]), id="uuids"),
        pytest.param(
            "VARCHAR",
            Span("a", "b", False, False),
            Domain(spans=(Span("a", "b", False, False),)),
            id="texts stay as they are",
        ),
        pytest.param(
            "INTEGER", Span(lower=2**31 - 1, lower_closed=False), NOTHING, id="past the largest value of the type"
        ),
        pytest.param(
            "BOOLEAN", Span(upper=False, upper_closed=False), NOTHING, id="below the smallest value of the type"
        ),
        pytest.param(
            "DATE",
            Span(lower=date.max, lower_closed=False),
            Domain(spans=(Span(lower=date.max, lower_closed=False),)),
            id="past the largest value of Python: kept, as the type has more",
        ),
    ],
)
def test_bounds_are_closed(type_text: str, span: Span, expected: Domain) -> None:
    assert close_spans(Domain(spans=(span,)), parse_type(type_text)) == expected


@pytest.mark.parametrize("name", DOMAINS)
def test_a_complement_holds_what_the_domain_does_not(name: str) -> None:
    domain = DOMAINS[name]
    complement = domain.complement()
    assert all((value in complement) != (value in domain) for value in VALUES)
    assert complement.complement() == domain
    assert domain.intersect(complement) == NOTHING
    assert domain.unite(complement) == EVERYTHING


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param(
            [Domain(spans=(Span(1, 5),)), Domain(spans=(Span(3, 9),))],
            Domain(spans=(Span(1, 9),)),
            id="spans that meet",
        ),
        pytest.param(
            [Domain(spans=(Span(1, 5, True, False),)), Domain(spans=(Span(5, 9, False),))],
            Domain(spans=(Span(1, 5, True, False), Span(5, 9, False, True))),
            id="spans with a value between them",
        ),
        pytest.param(
            [Domain(spans=(Span(1, 5, True, False),)), Domain(spans=(Span(5, 9, False),)), points([5])],
            Domain(spans=(Span(1, 9),)),
            id="that value joins them",
        ),
        pytest.param(
            [points([0, 3]), Domain(spans=(Span(1, 5),))],
            Domain(frozenset({0}), (Span(1, 5),)),
            id="a point inside a span",
        ),
        pytest.param([Domain(spans=(Span(upper=5),)), Domain(spans=(Span(lower=2),))], EVERYTHING, id="everything"),
    ],
)
def test_equal_sets_are_equal_domains(parts: list[Domain], expected: Domain) -> None:
    for order in itertools.permutations(parts):
        united = NOTHING
        for part in order:
            united = united.unite(part)
        assert united == expected


def test_many_excluded_values_meet_in_linear_time() -> None:
    evens, odds = points(range(0, 20_000, 2)).complement(), points(range(1, 20_000, 2)).complement()
    assert len(evens.spans) == 10_001
    assert evens.intersect(odds) == points(range(20_000)).complement()
