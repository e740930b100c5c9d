"""Secondary index search: bounds on an index's columns, where predicates do not bound the primary key.

Predicates are read as for the key, into boxes over the index's columns, some of which may hold NULL. Members leave rows
with a NULL in a searched column out of the index, so a column that may hold NULL is searched only where every row of
the answer must have a value there. A search finds a superset of the rows: WHERE is applied to them as to any others.
"""

from __future__ import annotations

from collections.abc import Sequence

from secateur.engine.sql.key_search import IndexSearch, KeySearch
from secateur.partitioning.pruning.key_bounds import KeyBounds
from secateur.partitioning.tables.table import IndexDef, TableDef
from secateur.planner.prune.bounds import Boxes, multiply
from secateur.planner.prune.direct_search import direct_search
from secateur.planner.prune.predicate import PredicateReader
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex


def index_search(table: TableDef, columns: ScanColumns, conjuncts: Sequence[ex.AnyExpression]) -> IndexSearch | None:
    """Return the search in the index with the most columns bound by equality.

    None when the predicates bound the first column of no index.

    Args:
        table: The table.
        columns: The columns of the scan.
        conjuncts: All conjuncts of the scan.
    """
    if not table.indexes or not conjuncts:
        return None
    found = [search for index in table.indexes if (search := _search(table, index, columns, conjuncts)) is not None]
    return max(found, key=_equalities) if found else None


def _search(
    table: TableDef, index: IndexDef, columns: ScanColumns, conjuncts: Sequence[ex.AnyExpression]
) -> IndexSearch | None:
    known = {name: table.column(name).type for name in index.columns}
    reader = PredicateReader.about(known, columns)
    read = multiply([reader.read(conjunct) for conjunct in conjuncts])
    searched = _searched(table, index, read)
    types = [(name, known[name]) for name in searched]
    factors = multiply([tuple(box.restrict(searched) for box in boxes) for boxes in read])
    bounds = KeyBounds.of(types, factors)
    if bounds is None:
        return None
    direct = direct_search(types, factors[0][0]) if len(factors) == 1 and len(factors[0]) == 1 else None
    return IndexSearch(index.name, searched, KeySearch(bounds, direct))


def _searched(table: TableDef, index: IndexDef, factors: Sequence[Boxes]) -> tuple[str, ...]:
    """Return the columns of an index that are searched: those before one that may be NULL in the answer."""
    first, *others = index.columns
    columns = [first]
    for name in others:
        # A box that bounds a column requires that it is not NULL.
        if table.column(name).nullable and not any(all(box[name].choices for box in boxes) for boxes in factors):
            break
        columns.append(name)
    return tuple(columns)


def _equalities(search: IndexSearch) -> int:
    direct = search.search.direct
    return 0 if direct is None else len(direct.prefix)
