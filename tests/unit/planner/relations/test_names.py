"""What a column of the text means in one SELECT; what is not certain is None."""

from __future__ import annotations

import pytest
from sqlglot import exp

from secateur.partitioning.types import parse_type
from secateur.planner.relations import Attribute, FromItem, VisibleNames

INTEGER = parse_type("INTEGER")
A, B, C, K_LEFT, K_RIGHT, K_BOTH = (
    Attribute(number, 0, name, INTEGER) for number, name in enumerate(("a", "b", "c", "k", "k", "k"))
)

LEFT = FromItem("l", (("a", A), ("k", K_LEFT), ("sum", None)))
RIGHT = FromItem("r", (("b", B), ("k", K_RIGHT)))
PARTLY = FromItem("p", (("b", B),), complete=False)


def column(text: str) -> exp.Column:
    parsed = exp.to_column(text, dialect="duckdb")
    assert isinstance(parsed, exp.Column)
    return parsed


@pytest.mark.parametrize(
    ("names", "text", "meaning"),
    [
        pytest.param(VisibleNames((LEFT, RIGHT)), "a", A, id="a column of one source"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "A", A, id="without regard to case"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "l.k", K_LEFT, id="with the name of its source"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "R.K", K_RIGHT, id="with that in capitals"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "k", None, id="of two sources it is neither"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "l.b", None, id="of the wrong source"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "sum", None, id="a computed column"),
        pytest.param(VisibleNames((LEFT, RIGHT)), "x", None, id="nothing of that name"),
        pytest.param(VisibleNames((LEFT,)), "main.l.a", None, id="with a schema"),
        pytest.param(VisibleNames((LEFT, PARTLY)), "a", A, id="beside a source that may have more, what is there"),
        pytest.param(VisibleNames((PARTLY,)), "x", None, id="what such a source may have"),
        pytest.param(
            VisibleNames((PARTLY,), outer=VisibleNames((LEFT,))), "a", None, id="it may also hide what is around"
        ),
        pytest.param(VisibleNames((RIGHT,), outer=VisibleNames((LEFT,))), "a", A, id="a column of the query around"),
        pytest.param(VisibleNames((RIGHT,), outer=VisibleNames((LEFT,))), "l.a", A, id="the same with its source"),
        pytest.param(
            VisibleNames((RIGHT,), outer=VisibleNames((LEFT,))), "k", K_RIGHT, id="the nearer one hides the outer"
        ),
        pytest.param(
            VisibleNames((FromItem("a", (("l", B),)),), outer=VisibleNames((LEFT,))),
            "l.a",
            None,
            id="it may be a field of a column",
        ),
        pytest.param(VisibleNames((RIGHT,), aliases={"total": B}), "total", B, id="an alias"),
        pytest.param(VisibleNames((RIGHT,), aliases={"b": C}), "b", B, id="a column before an alias"),
        pytest.param(
            VisibleNames((RIGHT,), aliases={"a": C}, outer=VisibleNames((LEFT,))),
            "a",
            None,
            id="an alias or a column around",
        ),
        pytest.param(VisibleNames((LEFT, RIGHT), merged={"k": K_BOTH}), "k", K_BOTH, id="what USING has merged"),
        pytest.param(
            VisibleNames((LEFT, RIGHT), merged={"k": None}), "k", None, id="what USING has merged to no column"
        ),
        pytest.param(VisibleNames((LEFT, RIGHT), merged={"k": K_BOTH}), "r.k", K_RIGHT, id="each side keeps its own"),
    ],
)
def test_resolve(names: VisibleNames, text: str, meaning: Attribute | None) -> None:
    assert names.resolve(column(text)) == meaning


@pytest.mark.parametrize(
    ("aliases", "text", "meaning"),
    [
        pytest.param({}, "b", B, id="no alias"),
        pytest.param({"b": B}, "b", B, id="an alias of the column itself"),
        pytest.param({"b": C}, "b", None, id="an alias of another column"),
        pytest.param({"b": None}, "b", None, id="an alias of something computed"),
        pytest.param({"b": C}, "r.b", B, id="a qualified name is no alias"),
    ],
)
def test_resolve_beside_aliases(aliases: dict[str, Attribute | None], text: str, meaning: Attribute | None) -> None:
    assert VisibleNames((RIGHT,), aliases=aliases).resolve_beside_aliases(column(text)) == meaning


@pytest.mark.parametrize(
    ("names", "text", "is_local"),
    [
        pytest.param(VisibleNames((LEFT,)), "a", True, id="a column"),
        pytest.param(VisibleNames((LEFT,)), "l.sum", True, id="a computed one, too"),
        pytest.param(VisibleNames((LEFT,), outer=VisibleNames((RIGHT,))), "b", False, id="a column around"),
        pytest.param(VisibleNames((PARTLY,)), "x", False, id="what may be there"),
        pytest.param(VisibleNames((LEFT, RIGHT), merged={"k": None}), "k", True, id="what USING has merged"),
        pytest.param(VisibleNames((LEFT,)), "r.a", False, id="of another source"),
    ],
)
def test_is_local(names: VisibleNames, text: str, is_local: bool) -> None:
    assert names.is_local(column(text)) is is_local


@pytest.mark.parametrize(
    ("sources", "alias", "columns"),
    [
        pytest.param((LEFT, RIGHT), None, [("a", A), ("k", K_LEFT), ("sum", None), ("b", B), ("k", K_RIGHT)], id="all"),
        pytest.param((LEFT, RIGHT), "r", [("b", B), ("k", K_RIGHT)], id="of one"),
        pytest.param((LEFT, PARTLY), None, None, id="not all are known"),
        pytest.param((LEFT, PARTLY), "l", [("a", A), ("k", K_LEFT), ("sum", None)], id="those of one are"),
        pytest.param((LEFT, PARTLY), "p", None, id="those of the other are not"),
        pytest.param((LEFT, LEFT), "l", None, id="two of one name"),
        pytest.param((LEFT,), "x", None, id="none of that name"),
    ],
)
def test_star(
    sources: tuple[FromItem, ...], alias: str | None, columns: list[tuple[str, Attribute | None]] | None
) -> None:
    assert VisibleNames(sources).star(alias) == columns


def test_using_merges_a_column_and_star_has_it_once() -> None:
    names = VisibleNames((LEFT,)).beside(VisibleNames((RIGHT,))).joined_by({"k": K_BOTH}, 1)
    assert names.resolve(column("k")) == K_BOTH
    assert names.star() == [("a", A), ("k", K_BOTH), ("sum", None), ("b", B)]
    assert names.star("r") == [("b", B), ("k", K_RIGHT)]


def test_merged_names_of_two_sides_are_neither() -> None:
    one = VisibleNames((LEFT,)).beside(VisibleNames((RIGHT,))).joined_by({"k": K_BOTH}, 1)
    both = one.beside(one)
    assert both.resolve(column("k")) is None
    assert both.star() == [("a", A), ("k", K_BOTH), ("sum", None), ("b", B)] * 2
