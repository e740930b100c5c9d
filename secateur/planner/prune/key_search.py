"""Primary-key search: the key ranges of one scan, for the search in its sorted partitions.

Predicates are read as for pruning, into boxes, but over all primary-key columns. This needs a separate reading: columns
after the partitioning key would make more boxes of one predicate, and the partition tree must not become coarser
because of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.pruning.comparison_target import BARE
from secateur.partitioning.pruning.key_bounds import KeyBounds
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.bounds import Boxes
from secateur.planner.prune.direct_search import direct_search
from secateur.planner.prune.key_expression import key_expression
from secateur.planner.prune.operands import is_free_of_rows
from secateur.planner.prune.predicate import PredicateReader
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import expressions as ex

_ORDERS: Final = frozenset(
    {
        "COMPARE_EQUAL",
        "COMPARE_LESSTHAN",
        "COMPARE_LESSTHANOREQUALTO",
        "COMPARE_GREATERTHAN",
        "COMPARE_GREATERTHANOREQUALTO",
    }
)


def read_keys(
    table: TableDef,
    reader: PredicateReader,
    conjuncts: Sequence[ex.AnyExpression],
    read: list[Boxes],
) -> tuple[PredicateReader, list[Boxes]]:
    """The boxes of each conjunct over the primary-key columns, and the reader that closes them.

    Args:
        table: The table.
        reader: The reader of the partitioning columns.
        conjuncts: The conjuncts.
        read: What it has read, which is the same if they name no further column of the key.
    """
    types = {name: table.column(name).type for name in table.primary_key}
    if (types.keys() - reader.types.keys()).isdisjoint(reader.columns.named_in(conjuncts)):
        return reader, read
    further = PredicateReader(types, reader.columns, reader.integers)
    return further, further.read_conjuncts(conjuncts)


def key_search(table: TableDef, factors: Sequence[Boxes], *, is_complete: bool) -> KeySearch:
    """The search that follows from a conjunction of unions of boxes over the primary-key columns.

    Args:
        table: The table.
        factors: The bounds of the conjuncts that may be used.
        is_complete: Whether these are all conditions of the statement, and each only compares a column of the key.
    """
    types = [(name, table.column(name).type) for name in table.primary_key]
    bounds = KeyBounds.of(types, factors)
    if bounds is None or len(factors) != 1 or len(factors[0]) != 1:
        return KeySearch(bounds)
    direct = direct_search(types, factors[0][0])
    return KeySearch(bounds, replace(direct, decides=True) if direct is not None and is_complete else direct)


def is_key_comparison(conjunct: ex.AnyExpression, table: TableDef, columns: ScanColumns) -> bool:
    """Whether a conjunct compares a primary-key column with operands, so that its boxes represent it completely."""
    match conjunct:
        case ex.Call(type=compared, children=sides) if compared in _ORDERS:
            pass
        case ex.BoundOperation(type="COMPARE_IN", children=sides):
            pass
        case _:
            return False
    keys = [side for side in sides if not is_free_of_rows(side)]
    if len(keys) != 1 or (isinstance(conjunct, ex.BoundOperation) and keys[0] is not sides[0]):
        return False

    def typed(column: ex.InputColumn) -> tuple[str, SqlType] | None:
        name = columns.name_of(column)
        return (name, columns.types[name]) if name is not None and name in table.primary_key else None

    found = key_expression(keys[0], typed)
    return found is not None and found.comparison_target == BARE
