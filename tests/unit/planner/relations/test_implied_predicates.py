"""What holds for every row of a relation. Left columns are ``a`` and ``b``, right ones ``c`` and ``d``."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.types import parse_type
from secateur.planner.relations import (
    Aggregate,
    Apply,
    Attribute,
    BoundPredicate,
    Derived,
    Distinct,
    Filter,
    ImpliedPredicates,
    Join,
    JoinType,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    SubqueryForm,
    Unknown,
    Values,
    Window,
    bind,
    predicate_text,
)
from secateur.planner.text import parse_query, tokenize

INTEGER = parse_type("INTEGER")
A, B, C, D = (
    Attribute(owner, position, name, INTEGER)
    for owner, position, name in ((1, 0, "a"), (1, 1, "b"), (2, 0, "c"), (2, 1, "d"))
)
X, Y = (Attribute(3, position, name, INTEGER) for position, name in enumerate("xy"))
CAST = Attribute(3, 0, "x", None)
NO_TABLE: Any = None
MEANING = {attribute.name: attribute for attribute in (A, B, C, D, X, Y)}


def said(text: str) -> BoundPredicate:
    sql = f"SELECT 1 FROM t WHERE {text}"
    return bind(parse_query(sql, tokenize(sql)).args["where"].this, lambda column: MEANING[column.name])


def where(input: Relation, *texts: str) -> Filter:
    return Filter(input, tuple(map(said, texts)))


LEFT, RIGHT = Scan(NO_TABLE, (A, B)), Scan(NO_TABLE, (C, D))
SEVEN, EIGHT = where(LEFT, "a = 7"), where(RIGHT, "c = 8")
EQUAL = (said("a = c"),)


@pytest.mark.parametrize(
    ("relation", "facts"),
    [
        pytest.param(LEFT, [], id="rows of a table may be any"),
        pytest.param(Unknown(), [], id="rows of a function, too"),
        pytest.param(Values((A, B), (said("a = 1"),)), ["a = 1"], id="rows of constants have something in common"),
        pytest.param(where(SEVEN, "b > 1"), ["a = 7", "b > 1"], id="filters add up"),
        pytest.param(Filter(LEFT, (said("a = 7").block("why"),)), [], id="what is only noted holds for nobody"),
        pytest.param(Sort(SEVEN), ["a = 7"], id="ORDER BY"),
        pytest.param(Limit(SEVEN), ["a = 7"], id="LIMIT: those that remain"),
        pytest.param(Distinct(SEVEN, None), ["a = 7"], id="DISTINCT"),
        pytest.param(Window(SEVEN, frozenset()), ["a = 7"], id="a window beside them"),
        pytest.param(Apply(SEVEN, EIGHT, SubqueryForm.EXISTS), ["a = 7"], id="a subquery beside them"),
        pytest.param(Opaque(SEVEN, "why"), [], id="what is not understood"),
        pytest.param(Derived(SEVEN, "d"), [], id="a derived table, until a rewrite has made it an input"),
        pytest.param(Project(SEVEN, (X,), (A,)), ["x = 7"], id="a column by another name"),
        pytest.param(Project(SEVEN, (X,), (B,)), ["a = 7"], id="a column that is not shown"),
        pytest.param(Aggregate(SEVEN, frozenset({B})), ["a = 7"], id="a group has such a row"),
        pytest.param(Aggregate(SEVEN, frozenset()), [], id="the one group over no rows has none"),
        pytest.param(Aggregate(SEVEN, frozenset({B}), plain=False), [], id="nor have some grouping sets"),
        pytest.param(Join(JoinType.INNER, SEVEN, EIGHT, EQUAL), ["a = 7", "c = 8", "a = c"], id="inner join"),
        pytest.param(
            Join(JoinType.SEMI, SEVEN, EIGHT, EQUAL),
            ["a = 7", "c = 8", "a = c"],
            id="semi join: of a partner that there is",
        ),
        pytest.param(Join(JoinType.ANTI, SEVEN, EIGHT, EQUAL), ["a = 7"], id="anti join"),
        pytest.param(Join(JoinType.LEFT, SEVEN, EIGHT, EQUAL), ["a = 7"], id="left join: the right side may be NULLs"),
        pytest.param(Join(JoinType.RIGHT, SEVEN, EIGHT, EQUAL), ["c = 8"], id="right join"),
        pytest.param(Join(JoinType.FULL, SEVEN, EIGHT, EQUAL), [], id="full join"),
        pytest.param(
            SetOperation(SetKind.UNION, (SEVEN, EIGHT), (X,), ((A,), (C,))),
            ["((x = 7)) OR ((x = 8))"],
            id="union: of one or the other",
        ),
        pytest.param(
            SetOperation(SetKind.UNION, (SEVEN, RIGHT), (X,), ((A,), (C,))), [], id="union with rows that may be any"
        ),
        pytest.param(
            SetOperation(SetKind.UNION, (SEVEN, EIGHT), (X,), ((A,), (None,))), [], id="union with something computed"
        ),
        pytest.param(
            SetOperation(SetKind.INTERSECT, (SEVEN, EIGHT), (X,), ((A,), (C,))),
            ["x = 7", "x = 8"],
            id="intersect: of both",
        ),
        pytest.param(
            SetOperation(SetKind.EXCEPT, (SEVEN, EIGHT), (X,), ((A,), (C,))), ["x = 7"], id="except: of the first"
        ),
        pytest.param(
            SetOperation(SetKind.INTERSECT, (SEVEN, EIGHT), (CAST,), ((A,), (C,))), [], id="a column that is cast"
        ),
        pytest.param(SetOperation(SetKind.EXCEPT, (SEVEN, EIGHT), (), ((), ())), [], id="columns that are not known"),
    ],
)
def test_facts(relation: Relation, facts: list[str]) -> None:
    assert [predicate_text(fact) for fact in ImpliedPredicates(relation).of(relation)] == facts


def test_a_fact_is_there_once() -> None:
    seven = said("a = 7")
    relation = Filter(Filter(LEFT, (seven,)), (seven,))
    assert ImpliedPredicates(relation).of(relation) == (seven,)


def test_every_relation_of_the_tree_has_its_own() -> None:
    join = Join(JoinType.LEFT, SEVEN, EIGHT, EQUAL)
    facts = ImpliedPredicates(join)
    assert [len(facts.of(relation)) for relation in (join, SEVEN, EIGHT, LEFT, RIGHT)] == [1, 1, 1, 0, 0]
