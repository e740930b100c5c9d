"""Returns the arrow kernel's form of a SELECT, if it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.result_type import column_type_of
from secateur.planner.fragments.arrow_compiler import compile_arrow
from secateur.planner.text.trees import children_of

__all__ = ["arrow_form"]

# The arrow kernel evaluates expressions by recursion; longer or deeper statements are left to DuckDB.
_NODES_MAX: Final = 1000
_DEPTH_MAX: Final = 200


def arrow_form(
    select: exp.Select, schema: Mapping[str, SqlType | str], relation: str, columns: Sequence[tuple[str, str]]
) -> ArrowFragment | None:
    """A SELECT over one relation for the arrow kernel; None where only DuckDB can answer it."""
    if not _is_within(select, _NODES_MAX, _DEPTH_MAX):
        return None
    typed = {
        name: known
        for name, kind in schema.items()
        if (known := kind if isinstance(kind, SqlType) else column_type_of(kind)) is not None
    }
    if len(typed) < len(schema):
        return None
    compiled = compile_arrow(select, typed, relation, columns)
    return compiled if isinstance(compiled, ArrowFragment) else None


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
