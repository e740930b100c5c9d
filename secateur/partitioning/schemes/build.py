"""Builds partition schemes from DDL and reports every error in them before the table exists.

The rest of the system only sees validated schemes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from secateur.partitioning.schemes.components import HashComponent, RangeComponent
from secateur.partitioning.schemes.garbage_collection import no_garbage_collection
from secateur.partitioning.schemes.interval import IntervalPartitioning
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_rules import RangeSpec, SchemeRules, by_lower_bound
from secateur.partitioning.types.column_type import SqlType


@no_garbage_collection()
def build_scheme(
    *,
    hashes: Sequence[HashComponent] = (),
    range_columns: Sequence[str] = (),
    ranges: Sequence[RangeSpec] = (),
    every: IntervalPartitioning | None = None,
    types: Mapping[str, SqlType],
    primary_key: Sequence[str],
    table: str,
) -> PartitionScheme:
    """Validate and build the scheme of a new table.

    Args:
        hashes: The table's hash components as written; names are matched without regard to case.
        range_columns: The columns of the range component; empty for none.
        ranges: The ranges in any order; their ordinals are their positions once sorted, and the catch-all comes last.
        every: The interval partitioning as written: its unit is converted to the one of the column's type.
        types: The type of every column of the table, by its name as declared.
        primary_key: The primary key, in order.
        table: The table's name, for messages.

    Returns:
        The scheme, its column names spelled as declared and its bounds canonical.

    Raises:
        SchemeError: The message names the component or column, what is wrong with it, and what to do.
    """
    check = SchemeRules(table, types, primary_key)
    own = check.hashes(hashes)
    component = None
    if range_columns:
        columns = check.columns(range_columns, "the range component")
        bounded = sorted((check.range(spec, columns) for spec in ranges if not spec.is_catch_all), key=by_lower_bound)
        others = [check.range(spec, columns) for spec in ranges if spec.is_catch_all]
        grid = None if every is None else check.every(every, columns)
        if not ranges and grid is None:
            raise check.error("the range component has no ranges; give at least one, or SPLIT AT (...)")
        if others and grid is not None and grid.start is None:
            raise check.error(
                "with EVERY each row has a range, so a DEFAULT PARTITION would stay empty; write STARTING"
                " to leave it the values before"
            )
        if len(others) > 1:
            raise check.error("it has two DEFAULT PARTITIONs; write one, which takes the rows that no range covers")
        component = RangeComponent(
            columns,
            tuple(replace(r, ordinal=ordinal) for ordinal, r in enumerate(bounded)),
            catch_all=replace(others[0], ordinal=len(bounded)) if others else None,
            every=grid,
        )
        check.disjoint(component)
    elif ranges:
        raise check.error("ranges without range columns")
    return check.finish(PartitionScheme(own, component))
