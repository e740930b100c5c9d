"""Statements as relations, as the search for a placement sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from secateur.planner.binding import Query, bind_query
from secateur.planner.relations import Relation, RelationBuilder, VisibleNames
from secateur.planner.text import read_parameters, tokenize

AGGREGATES = frozenset({"sum", "count", "count_star", "max", "min", "first"})


@pytest.fixture
def bound(context: Any) -> Callable[[str], Query]:
    """A query over the tables of the catalog; its scans are s0, s1, ... in the order of the text."""

    def bind(sql: str) -> Query:
        tokens, parameters = read_parameters(sql, tokenize(sql))
        return bind_query(sql, tokens, parameters, context.relation)

    return bind


@pytest.fixture
def relation_of(bound: Callable[[str], Query]) -> Callable[[str], Relation]:
    def build(sql: str) -> Relation:
        query = bound(sql)
        return RelationBuilder(query.scans, {}, AGGREGATES).query(query.tree, VisibleNames(), {}).relation

    return build
