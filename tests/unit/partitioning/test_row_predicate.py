"""Row predicates and value sets: which partitions are kept, and the same as an expression of Arrow."""

from __future__ import annotations

import random
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.pruning import (
    EVERYTHING,
    Domain,
    RowPredicate,
    Span,
    ValueSet,
    between,
    one_of,
    points,
    within,
)
from secateur.partitioning.types import parse_type

LESS_THAN_3 = within([Span(None, 3, True, False)])
ONE = points([1])


@pytest.mark.parametrize(
    ("factors", "nulls", "partition", "kept"),
    [
        ((), (), {"a": one_of(1)}, True),
        (({"a": ONE},), (), {}, True),
        (({"a": ONE},), (), {"a": one_of(1, 2)}, True),
        (({"a": ONE},), (), {"a": one_of(2)}, False),
        (({"a": ONE},), (), {"a": one_of(None)}, False),
        (({"a": ONE},), (), {"b": one_of(2)}, True),
        (({"a": EVERYTHING},), (), {"a": one_of(None)}, True),
        (({"a": LESS_THAN_3},), (), {"a": between(3, 9)}, False),
        (({"a": LESS_THAN_3},), (), {"a": between(2, 9)}, True),
        (({"a": LESS_THAN_3},), (), {"a": between(2, None, lower_closed=False)}, True),
        (({"a": ONE, "b": ONE},), (), {"a": one_of(1), "b": one_of(2)}, False),
        (({"a": ONE, "b": ONE}, {"b": points([2])}), (), {"a": one_of(1), "b": one_of(2)}, True),
        ((), ("a",), {"a": one_of(1)}, False),
        ((), ("a",), {"a": one_of(1, None)}, True),
        ((), ("a",), {"b": one_of(1)}, True),
    ],
)
def test_partitions_that_can_hold_a_row_are_kept(
    factors: tuple[dict[str, Domain], ...], nulls: tuple[str, ...], partition: dict[str, ValueSet], kept: bool
) -> None:
    predicate = RowPredicate((factors,) if factors else (), nulls)
    assert predicate.keeps(partition) is kept


def test_every_factor_has_to_hold_and_one_without_alternatives_never_does() -> None:
    both = RowPredicate((({"a": ONE},), ({"b": ONE},)))
    assert both.keeps({"a": one_of(1), "b": one_of(1)})
    assert not both.keeps({"a": one_of(1), "b": one_of(2)})
    never = RowPredicate(((),))
    assert not never.keeps({})
    keep = never.to_arrow({})
    assert keep is not None
    assert pa.table({"a": [1]}).filter(keep).num_rows == 0


def test_the_domain_of_a_column_is_that_of_all_alternatives_and_factors() -> None:
    predicate = RowPredicate((({"a": points([1, 2])}, {"a": points([7]), "b": ONE}), ({"a": within([Span(2, None)])},)))
    assert predicate.domain_of("a") == points([2, 7])
    assert predicate.domain_of("b") == EVERYTHING


def test_values_take_the_form_of_their_column() -> None:
    said = between("2024-01-01", "2024-01-31", has_null=True).canonical(parse_type("DATE"), "d")
    assert said == between(date(2024, 1, 1), date(2024, 1, 31), has_null=True)
    assert one_of(1, 2.0, None).canonical(parse_type("BIGINT"), "n") == one_of(1, 2, None)
    with pytest.raises(DataError, match="column n"):
        one_of("x").canonical(parse_type("BIGINT"), "n")


def random_domain(rng: random.Random) -> Domain:
    found = points(rng.sample(range(8), rng.randrange(3)))
    if rng.random() < 0.6:
        ends = sorted(rng.sample(range(8), 2))
        span = Span(rng.choice([None, ends[0]]), rng.choice([None, ends[1]]), rng.random() < 0.5, rng.random() < 0.5)
        found = found.unite(within([span]))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_law_the_expression_of_arrow_keeps_every_row_that_is_needed(seed: int) -> None:
    rng = random.Random(seed)
    types = {"a": parse_type("BIGINT"), "b": parse_type("BIGINT"), "x": parse_type("DOUBLE")}
    rows: list[dict[str, Any]] = [{name: rng.choice([None, *range(8)]) for name in types} for _ in range(40)]
    factors = tuple(
        tuple({name: random_domain(rng) for name in types if rng.random() < 0.6} for _ in range(rng.randrange(1, 3)))
        for _ in range(rng.randrange(3))
    )
    predicate = RowPredicate(factors, ("a",) if rng.random() < 0.2 else ())

    def is_needed(row: dict[str, Any], columns: tuple[str, ...]) -> bool:
        return all(row[name] is None for name in predicate.nulls) and all(
            any(
                all(
                    domain.is_everything or (row[name] is not None and row[name] in domain)
                    for name, domain in box.items()
                    if name in columns
                )
                for box in factor
            )
            for factor in factors
        )

    table = pa.table({name: pa.array([row[name] for row in rows], kind.arrow) for name, kind in types.items()})
    keep = predicate.to_arrow(types)
    kept = table if keep is None else table.filter(keep)
    # Arrow orders floating-point numbers otherwise, so conditions on x are left out.
    assert kept.to_pylist() == [row for row in rows if is_needed(row, ("a", "b"))], f"seed {seed}"
    assert all(row in kept.to_pylist() for row in rows if is_needed(row, ("a", "b", "x")))
