"""Returns the arrow kernel's form of a SELECT over one relation or several, if it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.result_type import column_type_of
from secateur.planner.binding.query import Query
from secateur.planner.fragments.arrow_compiler import compile_arrow
from secateur.planner.fragments.arrow_joins import JoinInput, compile_arrow_join
from secateur.planner.scans.scan_reading import ScanReading
from secateur.planner.text.dialect import parse_query, to_sql, tokenize
from secateur.planner.text.parser_cross_check import read_statements
from secateur.planner.text.trees import children_of

# The arrow kernel evaluates expressions by recursion; longer or deeper statements are left to DuckDB.
_NODES_MAX: Final = 1000
_DEPTH_MAX: Final = 200


def arrow_form(
    sql: str, schema: Mapping[str, SqlType | str], relation: str, columns: Sequence[tuple[str, str]]
) -> ArrowFragment | None:
    """A text over one relation for the arrow kernel; None where only DuckDB can answer it."""
    select, typed = parse_query(sql, tokenize(sql)), _typed(schema)
    if not isinstance(select, exp.Select) or typed is None or not _is_within(select, _NODES_MAX, _DEPTH_MAX):
        return None
    compiled = compile_arrow(select, typed, relation, columns)
    return compiled if isinstance(compiled, ArrowFragment) else None


def arrow_join_form(
    query: Query,
    scans: Sequence[ScanReading],
    schemas: Mapping[str, Mapping[str, SqlType | str]],
    columns: Sequence[tuple[str, str]],
) -> ArrowFragment | None:
    """A query over several tables for the arrow kernel; None where only DuckDB can answer it.

    Args:
        query: The query.
        scans: Its scans with their bounds.
        schemas: The columns of each relation.
        columns: Name and type text of each result column.
    """
    select = query.tree
    if (
        not isinstance(select, exp.Select)
        or not _is_faithful(query)
        or query.is_placed
        or any(scan.scan.is_fetched for scan in scans)
    ):
        return None
    if not _is_within(select, _NODES_MAX, _DEPTH_MAX):
        return None
    inputs = []
    for read in scans:
        scan, typed = read.scan, _typed(schemas[read.scan.relation])
        if typed is None:
            return None
        is_restricted = read.bounds.keys != KeySearch()
        key = scan.table.primary_key[0] if scan.table.primary_key and not is_restricted else None
        inputs.append(JoinInput(scan.relation, scan.alias, scan.node, typed, key, is_restricted))
    compiled = compile_arrow_join(select, inputs, columns)
    return compiled if isinstance(compiled, ArrowFragment) else None


def _is_faithful(query: Query) -> bool:
    """Whether sqlglot's tree of a query reads back as the same statement."""
    own, other = read_statements([query.sql, to_sql(query.tree)])
    return own is not None and own == other


def _typed(schema: Mapping[str, SqlType | str]) -> Mapping[str, SqlType] | None:
    """The types of columns; None if tables have no such type."""
    typed = {
        name: known
        for name, kind in schema.items()
        if (known := kind if isinstance(kind, SqlType) else column_type_of(kind)) is not None
    }
    return typed if len(typed) == len(schema) else None


def _is_within(tree: exp.Expr, nodes_max: int, depth_max: int) -> bool:
    """Whether a tree has at most so many nodes, none of them deeper."""
    level: list[exp.Expr] = [tree]
    count = 0
    for _ in range(depth_max):
        count += len(level)
        if count > nodes_max:
            return False
        level = [child for node in level for child in children_of(node)]
        if not level:
            return True
    return False
