"""What the predicates say about the columns of a secondary index, where they say nothing about the primary key.

They are read as for the key, into boxes over the index's columns, some of which may hold NULL. The rows that a search finds are a superset: WHERE is applied to
them as to any others.
"""

from __future__ import annotations

from itertools import takewhile

from secateur.engine.key_search import IndexSearch, KeySearch
from secateur.partitioning.index import IndexDef
from secateur.partitioning.key_bounds import KeyBounds
from secateur.partitioning.table import TableDef
from secateur.planner.predicates.bounds import multiply
from secateur.planner.predicates.predicate import PredicateReader
from secateur.planner.scans.key_search import direct_search
from secateur.planner.scans.scope import Scope

__all__ = ["index_search", "searched_columns"]


def index_search(table: TableDef, scope: Scope) -> IndexSearch | None:
    """The search in the index that the predicates name most columns of by equality; None when they bound the first column of none.

    Args:
        table: The table.
        scope: All conjuncts of the scan.
    """
    if not table.indexes or not scope.conjuncts:
        return None
    found = [search for index in table.indexes if (search := _search(table, index, scope)) is not None]
    return max(found, key=_equalities) if found else None


def searched_columns(table: TableDef, index: IndexDef) -> tuple[str, ...]:
    """The columns of an index that a search looks at: the first, and those behind it up to the first that may hold NULL."""
    first, *others = index.columns
    return (first, *takewhile(lambda name: not table.column(name).nullable, others))


def _search(table: TableDef, index: IndexDef, scope: Scope) -> IndexSearch | None:
    columns = searched_columns(table, index)
    types = [(name, table.column(name).type) for name in columns]
    never_null = {name: kind for name, kind in types if not table.column(name).nullable}
    reader = PredicateReader.about(dict(types), never_null, scope.column_of)
    factors = multiply([reader.read(conjunct) for conjunct in scope.conjuncts])
    bounds = KeyBounds.of(types, factors)
    if bounds is None:
        return None
    direct = direct_search(types, factors[0][0]) if len(factors) == 1 and len(factors[0]) == 1 else None
    return IndexSearch(index.name, columns, KeySearch(bounds, direct))


def _equalities(search: IndexSearch) -> int:
    direct = search.search.direct
    return 0 if direct is None else len(direct.prefix)
