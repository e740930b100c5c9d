"""The scans of a query with the predicates and bounds on which two independent parsers agree."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.planner.binding.query import Query, TableReference
from secateur.planner.plan_settings import PlanSettings
from secateur.planner.relations.build import build_relations
from secateur.planner.relations.nodes import Relation
from secateur.planner.relations.query_builder import TooLargeError
from secateur.planner.relations.transform import apart, conjuncts_of, unconfirmed_blocked
from secateur.planner.rewrites.rules import rewritten
from secateur.planner.scans.colocation import colocated_scans
from secateur.planner.scans.scan_bounds import ScanBounds, bound_scan
from secateur.planner.scans.scan_predicates import ScanPredicates, refused, scan_predicates_of
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.parser_cross_check import DuckDBParse, expressions_in, expressions_query, read_statements

_UNFAITHFUL = "the parsers of sqlglot and DuckDB may read the statement differently: write it in a simpler form"
_TOO_LARGE = "its common table expressions refer to one another too often to be analysed: use fewer of them"


@dataclass(frozen=True, slots=True)
class ScanReading:
    """One scan, its predicates and its key bounds.

    Attributes:
        scan: The scan.
        scope: Its predicates.
        bounds: Its key bounds.
        bounds_in_steps: Its key bounds when the keys of joins are found first; None when they are not.
    """

    scan: TableReference
    scope: ScanPredicates
    bounds: ScanBounds
    bounds_in_steps: ScanBounds | None = None


@dataclass(frozen=True, slots=True)
class QueryReading:
    """A query, read twice.

    Attributes:
        second: DuckDB's reading, or None when it shows none.
        is_faithful: Whether sqlglot's tree reads back as the same.
        scans: Its scans.
        relations: Its relations, rewritten.
        rewrites: The names of the rules that changed its relations.
        colocated: Groups of co-located scans, as names of relations.
    """

    second: DuckDBParse | None
    is_faithful: bool
    scans: tuple[ScanReading, ...]
    relations: tuple[Relation, ...]
    rewrites: tuple[str, ...]
    colocated: tuple[tuple[str, ...], ...]


def read_query(
    query: Query,
    settings: PlanSettings,
    integers: frozenset[int] = frozenset(),
) -> QueryReading:
    """Read a bound query.

    Args:
        query: The query.
        settings: The session's settings for the plan.
        integers: The indexes of the parameters that are integers in every execution.

    Cost: a millisecond, mostly in DuckDB's parser.
    """
    try:
        relations = build_relations(query)
    except TooLargeError:
        relations = ()
    predicates = {
        id(conjunct.predicate): conjunct.predicate for relation in relations for conjunct in conjuncts_of(relation)
    }
    texts = {number: to_sql(predicate) for number, predicate in predicates.items()}
    unique = list(dict.fromkeys(texts.values()))
    asked = [query.sql, to_sql(query.tree), expressions_query(unique)]
    second, own, expressions = read_statements(asked)
    theirs = frozenset[str]() if second is None else second.conjuncts()
    qualified = expressions_in(expressions, len(unique)) if unique else []
    confirmed = frozenset(
        text for text, form in zip(unique, qualified, strict=True) if form is not None and form in theirs
    )
    is_faithful = second is not None and own == second
    relations = tuple(
        unconfirmed_blocked(relation, lambda conjunct: texts[id(conjunct.predicate)] in confirmed)
        for relation in relations
    )
    if is_faithful:
        relations, rewrites = rewritten(relations, settings.disabled_rules)
    else:
        relations, rewrites = tuple(apart(relation, _UNFAITHFUL) for relation in relations), ()
    scopes = scan_predicates_of(query, relations) if relations else refused(query, _TOO_LARGE)
    scans = tuple(
        ScanReading(scan, scope, bound_scan(scan, scope, settings.combinations_per_partition, integers))
        for scan, scope in zip(query.scans, scopes, strict=True)
    )
    return QueryReading(
        second,
        is_faithful,
        scans,
        relations,
        rewrites,
        colocated_scans(relations),
    )
