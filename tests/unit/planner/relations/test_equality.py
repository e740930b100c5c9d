"""Equality classes, and what they carry from one side of a join to the other."""

from __future__ import annotations

import pytest

from secateur.partitioning.types import parse_type
from secateur.planner.relations import Attribute, BoundPredicate, EquivalenceClasses, any_of, bind, predicate_text
from secateur.planner.text import parse_query, to_sql, tokenize

KINDS = {"a": "INTEGER", "b": "BIGINT", "c": "INTEGER", "d": "VARCHAR", "e": "DOUBLE", "f": "DOUBLE"}
OWNERS = {"a": 1, "b": 2, "c": 3, "d": 2, "e": 1, "f": 2}
ATTRIBUTES = {
    name: Attribute(OWNERS[name], position, name, parse_type(kind))
    for position, (name, kind) in enumerate(KINDS.items())
}


def said(text: str) -> BoundPredicate:
    sql = f"SELECT 1 FROM t WHERE {text}"
    return bind(parse_query(sql, tokenize(sql)).args["where"].this, lambda column: ATTRIBUTES[column.name])


@pytest.mark.parametrize(
    ("equalities", "predicate", "side", "carried"),
    [
        pytest.param(["a = b"], "a = 5", 2, "b = 5", id="from one side to the other"),
        pytest.param(["a = b"], "b > 5", 1, "a > 5", id="integers of two widths"),
        pytest.param(["a = b", "b = c"], "a IN (1, 2)", 3, "c IN (1, 2)", id="through a third table"),
        pytest.param(["a IS NOT DISTINCT FROM b"], "a IS NULL", 2, "b IS NULL", id="equality of NULLs"),
        pytest.param(["a = b"], "a = 5 OR c = 3", 2, "b = 5 OR c = 3", id="what has no equal stays as it is"),
        pytest.param(["a = d"], "a = 5", 2, None, id="not between types"),
        pytest.param(["e = f"], "e = 0", 2, None, id="not for floats, of which two may be equal and unlike"),
        pytest.param(["a < b"], "a = 5", 2, None, id="not through another comparison"),
        pytest.param(["a = b + 1"], "a = 5", 2, None, id="not through an expression"),
        pytest.param(["a = b OR c = 1"], "a = 5", 2, None, id="not through a disjunction"),
        pytest.param(["a = b"], "a = b", 2, None, id="an equality of itself says nothing"),
    ],
)
def test_carrying(equalities: list[str], predicate: str, side: int, carried: str | None) -> None:
    classes = EquivalenceClasses([said(text) for text in equalities])
    found = classes.carry(said(predicate), frozenset({side}))
    assert (None if found is None else predicate_text(found)) == carried


def test_blocked_restrictions_equate_and_carry_nothing() -> None:
    assert EquivalenceClasses([said("a = b").block("why")]).carry(said("a = 5"), frozenset({2})) is None
    assert EquivalenceClasses([said("a = b")]).carry(said("a = 5").block("why"), frozenset({2})) is None


def test_equalities_of_one_side_follow_through_the_other() -> None:
    known = [said("a = b"), said("b = c")]
    (implied,) = EquivalenceClasses(known).implied(frozenset({1, 3}), known)
    assert predicate_text(implied) == "a IS NOT DISTINCT FROM c"
    assert EquivalenceClasses([*known, said("a = c")]).implied(frozenset({1, 3}), [*known, said("a = c")]) == []


def test_any_of_is_the_union_of_what_each_alternative_says() -> None:
    either = any_of([[said("a = 1"), said("b = 2")], [said("a = 3")]])
    assert either is not None
    assert to_sql(either.predicate) == "((a = 1) AND (b = 2)) OR ((a = 3))"
    assert any_of([[said("a = 1")], []]) is None
    assert any_of([]) is None
