"""Boxes over the primary key become ranges of keys."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from secateur.partitioning.pruning import (
    EVERY_KEY,
    EVERYTHING,
    RANGES_MAX,
    Box,
    Choice,
    Comparison,
    Constraint,
    Domain,
    KeyBoundary,
    KeyBounds,
    KeyRange,
    KeyRanges,
    Parameter,
    ParameterComparison,
    ParameterList,
    Span,
    key_ranges,
    points,
    unite_ranges,
)
from secateur.partitioning.types import SqlType, parse_type
from secateur.protocol import decode, encode

BIGINT = parse_type("BIGINT")
VARCHAR = parse_type("VARCHAR")
ABC = (("a", BIGINT), ("b", BIGINT), ("c", VARCHAR))


def spans(*found: Span) -> Domain:
    return Domain(spans=found)


def below(value: int) -> Domain:
    return spans(Span(upper=value, upper_closed=False))


def box(**domains: Domain) -> Box:
    return Box.of({column: Constraint((Choice(domain),)) for column, domain in domains.items()})


def compared(comparison: Comparison, *indexes: int) -> Constraint:
    return Constraint((Choice(tests=(ParameterComparison(comparison, tuple(map(Parameter, indexes))),)),))


def shown(found: KeyRanges | None) -> list[str]:
    assert found is not None
    return [
        f"{span.lower.values} {'<' if span.lower.after else '<='} key {'<=' if span.upper.after else '<'}"
        f" {span.upper.values}".replace(",)", ")")
        for span in found.ranges
    ]


def bound(*boxes: Box) -> list[str]:
    bounds = KeyBounds.of(ABC, [boxes])
    return shown(bounds and bounds.bind(()))


OPEN = {"lower_closed": False, "upper_closed": False}


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        pytest.param([box(a=points([500]), b=below(700))], ["(500) <= key < (500, 700)"], id="seed: predicates pushed"),
        pytest.param(
            [box(a=points([500]), b=spans(Span(500, 750, upper_closed=False)))],
            ["(500, 500) <= key < (500, 750)"],
            id="seed: bounds lifted and pushed again",
        ),
        pytest.param(
            [
                box(a=spans(Span(500, 1000, **OPEN))),
                box(a=points([500]), b=spans(Span(0))),
                box(a=points([1000]), b=below(500)),
            ],
            ["(500, 0) <= key < (1000, 500)"],
            id="seed: the boxes of two row values are one range",
        ),
        pytest.param([box(a=points([5]))], ["(5) <= key <= (5)"], id="prefix"),
        pytest.param([box(a=spans(Span(lower=5)))], ["(5) <= key <= ()"], id="from"),
        pytest.param([box(a=spans(Span(5, lower_closed=False)))], ["(5) < key <= ()"], id="above"),
        pytest.param(
            [box(a=spans(Span(upper=5)))], ["() <= key <= (5)"], id="KUDU-2173: up to a prefix takes in what extends it"
        ),
        pytest.param([box(a=below(5))], ["() <= key < (5)"], id="below"),
        pytest.param(
            [box(a=points([2**63 - 1]))],
            [f"({2**63 - 1}) <= key <= ({2**63 - 1})"],
            id="KUDU-1766: the largest value has no next",
        ),
        pytest.param([box(a=points([1, 3]))], ["(1) <= key <= (1)", "(3) <= key <= (3)"], id="IN"),
        pytest.param(
            [box(a=points([1, 2]), b=points([7, 8]), c=points(["x"]))],
            [f"({a}, {b}, 'x') <= key <= ({a}, {b}, 'x')" for a in (1, 2) for b in (7, 8)],
            id="whole keys",
        ),
        pytest.param(
            [box(a=spans(Span(1, 3)), b=points([7]))],
            [f"({a}, 7) <= key <= ({a}, 7)" for a in (1, 2, 3)],
            id="few values that can be counted",
        ),
        pytest.param(
            [box(a=spans(Span(1, 3000)), b=points([7]))],
            ["(1, 7) <= key <= (3000, 7)"],
            id="many values narrow the ends only",
        ),
        pytest.param(
            [box(a=spans(Span(1, 3000)), b=spans(Span(7, 9, **OPEN)))],
            ["(1, 7) < key < (3000, 9)"],
            id="ends of open spans",
        ),
        pytest.param(
            [box(a=spans(Span(1, 3000, **OPEN)), b=points([7]))],
            ["(1) < key < (3000)"],
            id="open ends hide the columns behind",
        ),
        pytest.param(
            [box(a=spans(Span(1, 3000)), c=points(["x"]))], ["(1) <= key <= (3000)"], id="a gap in the columns"
        ),
        pytest.param(
            [box(a=spans(*below(5).spans, Span(5, lower_closed=False)))],
            ["() <= key < (5)", "(5) < key <= ()"],
            id="not equal",
        ),
        pytest.param(
            [box(a=spans(*below(5).spans, Span(5, lower_closed=False))), box(a=points([5]))],
            ["() <= key <= ()"],
            id="all after all",
        ),
        pytest.param([], [], id="never"),
        pytest.param([box(a=points([1]), b=Domain())], [], id="nothing"),
    ],
)
def test_boxes(boxes: list[Box], expected: list[str]) -> None:
    assert bound(*boxes) == expected


@pytest.mark.parametrize(
    "boxes", [[box(b=points([1]))], [box(a=points([1])), box(b=points([1]))]], ids=["behind", "one branch"]
)
def test_no_bounds_without_the_first_column(boxes: list[Box]) -> None:
    assert KeyBounds.of(ABC, [boxes]) is None


def test_a_factor_without_the_first_column_is_left_out() -> None:
    bounds = KeyBounds.of(ABC, [[box(b=points([1]))], [box(a=points([1, 2]))], [box(a=spans(Span(lower=2)))]])
    assert bounds is not None
    assert shown(bounds.bind(())) == ["(2) <= key <= (2)"]


class TestMany:
    def test_values_count_with_their_hull(self) -> None:
        values = range(RANGES_MAX + 1)
        bounds = KeyBounds.of(ABC, [[box(a=points(values), b=points([1]))]])
        assert bounds is not None
        assert shown(bounds.bind(())) == [f"(0, 1) <= key <= ({RANGES_MAX}, 1)"]
        assert len(bounds.factors[0][0]["a"].choices[0].domain.points) == 0, (
            "a long list must not travel with the plan a second time"
        )

    def test_boxes_count_with_the_hull_of_each_column(self) -> None:
        assert bound(*(box(a=points([n]), b=points([-n])) for n in range(1, 2001))) == [
            "(1, -2000) <= key <= (2000, -1)"
        ]

    def test_a_product_is_cut_down_column_by_column(self) -> None:
        found = bound(box(a=points(range(10)), b=points(range(10))))
        assert found == [f"({a}, 0) <= key <= ({a}, 9)" for a in range(10)]

    def test_operands_say_nothing(self) -> None:
        assert KeyBounds.of(ABC, [[Box.of({"a": compared(Comparison.IN, *range(RANGES_MAX + 1))})]]) is None

    def test_a_long_list_in_a_parameter_says_nothing(self) -> None:
        bounds = KeyBounds.of(
            ABC,
            [[Box.of({"a": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (ParameterList(0),)),)),))})]],
        )
        assert bounds is not None
        assert shown(bounds.bind([[3, 1]])) == ["(1) <= key <= (1)", "(3) <= key <= (3)"]
        assert bounds.bind([list(range(RANGES_MAX + 1))]) == KeyRanges((EVERY_KEY,))
        assert bounds.bind([None]) == KeyRanges(())


class TestParameters:
    bounds = KeyBounds.of(ABC, [[Box.of({"a": compared(Comparison.IN, 0), "b": compared(Comparison.LESS, 1)})]])

    @pytest.mark.parametrize(
        ("params", "expected"),
        [
            ([500, 700], ["(500) <= key < (500, 700)"]),
            ([500, 1.5], ["(500) <= key <= (500, 1)"]),
            (["500", Decimal(7)], ["(500) <= key < (500, 7)"]),
            ([500, None], []),
            ([None, 700], []),
            ([1.5, 700], []),
            ([500, b"?"], ["(500) <= key <= (500)"]),
            ([b"?", 700], ["() <= key <= ()"]),
        ],
        ids=str,
    )
    def test_binding(self, params: list[Any], expected: list[str]) -> None:
        assert self.bounds is not None
        assert shown(self.bounds.bind(params)) == expected

    def test_too_few(self) -> None:
        assert self.bounds is not None
        with pytest.raises(IndexError):
            self.bounds.bind([500])

    def test_constant(self) -> None:
        assert self.bounds is not None
        assert not self.bounds.is_constant
        constant = KeyBounds.of(ABC, [[box(a=points([1]))]])
        assert constant is not None
        assert constant.is_constant


def test_wire_and_pickle() -> None:
    columns = (("d", parse_type("DECIMAL(10,2)")), ("day", parse_type("DATE")))
    for bounds in (
        KeyBounds.of(columns, [[box(d=points([Decimal("1.50")]), day=spans(Span(date(2024, 1, 1))))]]),
        KeyBounds.of(columns, [[Box.of({"d": compared(Comparison.BETWEEN, 0, 1)})]]),
    ):
        assert bounds is not None
        again = decode(encode(bounds), KeyBounds)
        assert again == bounds == pickle.loads(pickle.dumps(bounds))
        assert again.bind([1, 2]) == bounds.bind([1, 2])


@pytest.mark.parametrize("seed", range(30))
def test_ranges_hold_every_key_of_the_domains(seed: int) -> None:
    rng = random.Random(seed)
    types: list[SqlType] = [BIGINT, VARCHAR, parse_type("BOOLEAN")]
    values: list[list[Any]] = [list(range(-2, 6)), ["", "a", "ab", "b"], [False, True]]
    for _ in range(40):
        domains = [_random_domain(rng, choices) for choices in values]
        found = unite_ranges(key_ranges(domains, types, rng.choice([1, 2, 5, 64])))
        for key in ((a, b, c) for a in values[0] for b in values[1] for c in values[2]):
            if all(value in domain for value, domain in zip(key, domains, strict=True)):
                assert any(_holds(span, key) for span in found.ranges), (domains, key, found)


@pytest.mark.parametrize("seed", range(10))
def test_points_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    choices: Mapping[str, list[int]] = {"a": rng.sample(range(9), 3), "b": rng.sample(range(9), 3)}
    found = unite_ranges(key_ranges([points(choices["a"]), points(choices["b"])], [BIGINT, BIGINT], RANGES_MAX))
    expected = sorted((a, b) for a in choices["a"] for b in choices["b"])
    assert [span.lower.values for span in found.ranges] == [span.upper.values for span in found.ranges] == expected


def _random_domain(rng: random.Random, values: list[Any]) -> Domain:
    if rng.random() < 0.2:
        return EVERYTHING
    found = [
        Span(
            rng.choice([None, *values]),
            rng.choice([None, *values]),
            lower_closed=rng.random() < 0.5,
            upper_closed=rng.random() < 0.5,
        )
        for _ in range(rng.randint(0, 2))
    ]
    return Domain(frozenset(rng.sample(values, rng.randint(0, 2))), tuple(span for span in found if not span.is_empty))


def _holds(span: KeyRange, key: tuple[Any, ...]) -> bool:
    def is_below(cut: KeyBoundary) -> bool:
        head = key[: len(cut.values)]
        return head < cut.values or (head == cut.values and cut.after)

    return not is_below(span.lower) and is_below(span.upper)
