"""Which restrictions reach which scan, relation by relation.

Columns of the left scan are ``a`` and ``b``, of the right one ``c`` and ``d``.

Notes, which do not restrict but say why not, stand in angle brackets.
"""

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
    predicates_of_scans,
)
from secateur.planner.text import parse_query, tokenize

INTEGER, BIGINT, DOUBLE = (parse_type(name) for name in ("INTEGER", "BIGINT", "DOUBLE"))
A, B, C, D = (
    Attribute(owner, position, name, INTEGER)
    for owner, position, name in ((1, 0, "a"), (1, 1, "b"), (2, 0, "c"), (2, 1, "d"))
)
F = Attribute(1, 2, "f", DOUBLE)
X, Y = (Attribute(3, position, name, INTEGER) for position, name in enumerate("xy"))
WIDE = Attribute(3, 0, "x", BIGINT)
CAST = Attribute(3, 0, "x", None)
NO_TABLE: Any = None

LEFT, RIGHT = Scan(NO_TABLE, (A, B, F)), Scan(NO_TABLE, (C, D))


def said(text: str, **meaning: Attribute) -> BoundPredicate:
    """A predicate; ``x`` is the attribute that is given, or the first of relation 3."""
    known = {**{attribute.name: attribute for attribute in (A, B, C, D, F, X, Y)}, **meaning}
    sql = f"SELECT 1 FROM t WHERE {text}"
    return bind(parse_query(sql, tokenize(sql)).args["where"].this, lambda column: known.get(column.name))


def where(input: Relation, *texts: str, **meaning: Attribute) -> Filter:
    return Filter(input, tuple(said(text, **meaning) for text in texts))


def reaching(root: Relation, scan: Scan) -> list[str]:
    """What is said to a scan about its own columns, as lines."""
    own = frozenset(attribute.owner for attribute in scan.attributes)
    shown = []
    for found, bound_predicates in predicates_of_scans(root):
        for bound_predicate in bound_predicates if found is scan else ():
            text = predicate_text(bound_predicate)
            if bound_predicate.blocked is not None:
                shown.append(f"<{bound_predicate.blocked.replace('{predicate}', text)}>")
            elif bound_predicate.touches(own):
                shown.append(text)
    return shown


@pytest.mark.parametrize(
    ("relation", "left"),
    [
        pytest.param(where(LEFT, "a = 1"), ["a = 1"], id="a filter"),
        pytest.param(where(where(LEFT, "b = 2"), "a = 1"), ["b = 2", "a = 1"], id="two, the nearer first"),
        pytest.param(where(Sort(LEFT), "a = 1"), ["a = 1"], id="over ORDER BY"),
        pytest.param(where(Derived(LEFT, "t"), "a = 1"), ["a = 1"], id="over a derived table"),
        pytest.param(
            where(Limit(LEFT), "a = 1"),
            ["<the filter a = 1 cannot be pushed below LIMIT: filter inside it if you mean its input>"],
            id="not over LIMIT",
        ),
        pytest.param(
            where(Limit(LEFT, "USING SAMPLE"), "a = 1"),
            ["<the filter a = 1 cannot be pushed below USING SAMPLE: filter inside it if you mean its input>"],
            id="nor over a sample",
        ),
        pytest.param(Limit(where(LEFT, "a = 1")), ["a = 1"], id="below LIMIT"),
        pytest.param(
            where(Opaque(LEFT, "PIVOT is not understood"), "a = 1"),
            ["<PIVOT is not understood>"],
            id="not over what is not understood",
        ),
        pytest.param(
            where(Limit(Opaque(Limit(LEFT, "OFFSET"), "PIVOT")), "a = 1"),
            ["<PIVOT>"],
            id="of several reasons the first stays",
        ),
        pytest.param(where(Project(LEFT, (X,), (A,)), "x = 1"), ["a = 1"], id="a column by another name"),
        pytest.param(where(Project(LEFT, (X, Y), (A, None)), "x = y"), ["a = y"], id="a computed column is free"),
        pytest.param(where(Aggregate(LEFT, frozenset({A})), "a = 1"), ["a = 1"], id="HAVING about a key"),
        pytest.param(
            where(Aggregate(LEFT, frozenset({A})), "b = 1"),
            [
                (
                    "<the filter b = 1 cannot be pushed below GROUP BY, which does not name b: group by b, or filter"
                    " inside the subquery>"
                )
            ],
            id="HAVING about something else",
        ),
        pytest.param(
            where(Aggregate(LEFT, frozenset({A})), "a = b"),
            [
                (
                    "<the filter a = b cannot be pushed below GROUP BY, which does not name b: group by b, or filter"
                    " inside the subquery>"
                ),
                "a = b",
            ],
            id="HAVING about both: what is no key is free",
        ),
        pytest.param(
            where(Aggregate(LEFT, frozenset({F})), "f = 0"),
            [
                (
                    "<the filter f = 0 cannot be pushed below GROUP BY, which does not name f: group by f, or filter"
                    " inside the subquery>"
                )
            ],
            id="a key of which two values are equal",
        ),
        pytest.param(where(Distinct(LEFT, None), "b = 1"), ["b = 1"], id="over DISTINCT"),
        pytest.param(where(Distinct(LEFT, frozenset({A})), "a = 1"), ["a = 1"], id="over DISTINCT ON it"),
        pytest.param(
            where(Distinct(LEFT, frozenset({A})), "b = 1"),
            [
                (
                    "<the filter b = 1 cannot be pushed below DISTINCT ON, which does not name b: add b to it, or"
                    " filter inside the subquery>"
                )
            ],
            id="not over DISTINCT ON something else",
        ),
        pytest.param(
            where(Window(LEFT, frozenset({A})), "a = 1"), ["a = 1"], id="over a window that is partitioned by it"
        ),
        pytest.param(
            where(Window(LEFT, frozenset({A})), "b = 1"),
            [
                (
                    "<the filter b = 1 cannot be pushed below a window that is not partitioned by b: partition it by b,"
                    " or filter inside the subquery>"
                )
            ],
            id="not over another window",
        ),
        pytest.param(where(Apply(LEFT, RIGHT, SubqueryForm.VALUE), "a = 1"), ["a = 1"], id="beside a subquery"),
    ],
)
def test_one_input(relation: Relation, left: list[str]) -> None:
    assert reaching(relation, LEFT) == left


@pytest.mark.parametrize(
    ("kind", "above", "left", "right"),
    [
        pytest.param(JoinType.INNER, "a = 1", ["a = 1"], ["c = 1"], id="inner: to its own side, and over the equality"),
        pytest.param(JoinType.INNER, "d = 1", [], ["d = 1"], id="inner: what has no equal stays"),
        pytest.param(JoinType.SEMI, "a = 1", ["a = 1"], ["c = 1"], id="semi: as inner"),
        pytest.param(JoinType.ANTI, "a = 1", ["a = 1"], ["c = 1"], id="anti: a row removes its equals alone"),
        pytest.param(JoinType.LEFT, "a = 1", ["a = 1"], ["c = 1"], id="left: over to the side that is filled"),
        pytest.param(JoinType.LEFT, "c = 1", ["a = 1"], ["c = 1"], id="left: NULLs are refused, so it is inner"),
        pytest.param(
            JoinType.LEFT,
            "c IS NULL",
            [],
            [
                (
                    "<c IS NULL can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a"
                    " condition that NULL does not satisfy>"
                )
            ],
            id="left: what NULLs pass is not said of the right side",
        ),
        pytest.param(JoinType.RIGHT, "c = 1", ["a = 1"], ["c = 1"], id="right: as left"),
        pytest.param(
            JoinType.FULL, "a = 1", ["a = 1"], ["c = 1"], id="full: is left where NULLs are refused on the left"
        ),
        pytest.param(
            JoinType.FULL,
            "a = 1 OR c = 1",
            [
                (
                    "<a = 1 OR c = 1 can hold for rows that the FULL JOIN fills with NULLs: use an inner join, or a"
                    " condition that NULL does not satisfy>"
                )
            ],
            [
                (
                    "<a = 1 OR c = 1 can hold for rows that the FULL JOIN fills with NULLs: use an inner join, or a"
                    " condition that NULL does not satisfy>"
                )
            ],
            id="full: otherwise nothing passes",
        ),
    ],
)
def test_joins_on_an_equality(kind: JoinType, above: str, left: list[str], right: list[str]) -> None:
    relation = where(Join(kind, LEFT, RIGHT, (said("a = c"),)), above)
    told = ([text for text in reaching(relation, scan) if text != "a = c"] for scan in (LEFT, RIGHT))
    assert tuple(told) == (left, right)


@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        pytest.param(JoinType.INNER, (True, True), id="inner"),
        pytest.param(JoinType.SEMI, (True, True), id="semi"),
        pytest.param(JoinType.ANTI, (False, True), id="anti"),
        pytest.param(JoinType.LEFT, (False, True), id="left"),
        pytest.param(JoinType.RIGHT, (True, False), id="right"),
        pytest.param(JoinType.FULL, (False, False), id="full"),
    ],
)
def test_the_condition_of_a_join_restricts_the_side_that_it_may_refuse(
    kind: JoinType, passes: tuple[bool, bool]
) -> None:
    relation = Join(kind, LEFT, RIGHT, (said("a = 1"), said("c = 2")))
    assert ("a = 1" in reaching(relation, LEFT), "c = 2" in reaching(relation, RIGHT)) == passes


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        pytest.param(JoinType.INNER, True, id="inner"),
        pytest.param(JoinType.SEMI, True, id="semi"),
        pytest.param(JoinType.LEFT, True, id="left"),
        pytest.param(JoinType.ANTI, True, id="anti"),
        pytest.param(JoinType.RIGHT, False, id="right"),
        pytest.param(JoinType.FULL, False, id="full"),
    ],
)
def test_what_holds_for_the_left_side_is_told_to_the_right(kind: JoinType, told: bool) -> None:
    relation = Join(kind, where(LEFT, "a = 7"), RIGHT, (said("a = c"),))
    assert ("c = 7" in reaching(relation, RIGHT)) is told


@pytest.mark.parametrize("kind", [JoinType.INNER, JoinType.SEMI])
def test_what_holds_for_the_right_side_is_told_to_the_left(kind: JoinType) -> None:
    relation = Join(kind, LEFT, where(RIGHT, "c = 8"), (said("a = c"),))
    assert "a = 8" in reaching(relation, LEFT)


@pytest.mark.parametrize("kind", [JoinType.LEFT, JoinType.ANTI, JoinType.FULL])
def test_but_not_where_the_left_side_is_preserved(kind: JoinType) -> None:
    relation = Join(kind, LEFT, where(RIGHT, "c = 8"), (said("a = c"),))
    assert reaching(relation, LEFT) == []


def test_what_a_full_join_merges_reaches_both_sides() -> None:
    relation = where(Join(JoinType.FULL, LEFT, RIGHT, (said("a = c"),), ((X, A, C),)), "x = 1")
    assert reaching(relation, LEFT) == ["a = 1"]
    assert reaching(relation, RIGHT) == ["c = 1"]


@pytest.mark.parametrize("kind", list(SetKind))
def test_set_operations_pass_to_all_inputs(kind: SetKind) -> None:
    relation = where(SetOperation(kind, (LEFT, RIGHT), (X,), ((A,), (C,))), "x = 1")
    assert (reaching(relation, LEFT), reaching(relation, RIGHT)) == (["a = 1"], ["c = 1"])


def test_a_column_that_another_input_has_with_another_type_does_not_pass() -> None:
    relation = where(SetOperation(SetKind.UNION, (LEFT, RIGHT), (CAST,), ((A,), (C,))), "x = 1", x=CAST)
    assert reaching(relation, LEFT) == [
        (
            "<the filter a = 1 cannot be pushed below UNION, because x may have another type in another input: CAST it"
            " to one type in every input>"
        )
    ]


def test_a_column_that_was_widened_is_not_what_the_user_wrote() -> None:
    relation = where(SetOperation(SetKind.UNION, (LEFT, RIGHT), (WIDE,), ((A,), (C,))), "x = 1", x=WIDE)
    (_, (bound_predicate,)), _ = predicates_of_scans(relation)
    assert bound_predicate.carried


def test_a_subquery_is_told_nothing_before_it_is_a_join() -> None:
    relation = where(Apply(LEFT, where(RIGHT, "d = 3"), SubqueryForm.IN), "a = 1", "c = 2")
    assert reaching(relation, RIGHT) == ["d = 3"]


@pytest.mark.parametrize("leaf", [Values((A,)), Unknown()])
def test_what_is_no_table_has_no_scan(leaf: Relation) -> None:
    assert list(predicates_of_scans(where(leaf, "a = 1"))) == []


def test_what_is_said_of_the_rows_around_goes_along() -> None:
    """A correlated subquery sees a row of the left side as constants: where it fails, the whole subquery does not
    matter.
    """
    relation = where(Join(JoinType.LEFT, LEFT, Limit(RIGHT)), "a = 1")
    assert [
        predicate_text(said) for scan, found in predicates_of_scans(relation) if scan is RIGHT for said in found
    ] == ["a = 1"]


def test_a_restriction_reaches_a_scan_once() -> None:
    one = said("a = 1")
    assert reaching(Filter(Filter(LEFT, (one,)), (one,)), LEFT) == ["a = 1"]
