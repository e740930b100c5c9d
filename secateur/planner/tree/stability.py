"""Which expressions have the same value wherever and whenever they are evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import within
from secateur.protocol.clocks import CLOCKS


def unstable_call(nodes: Iterable[ex.AnyExpression]) -> ex.Call | None:
    """The first call in expressions whose value depends on when and where it is evaluated.

    DuckDB says of each overload whether it is CONSISTENT. One that is so WITHIN_QUERY reads the clock where it has no
    arguments; with arguments it reads a setting such as the time zone, and settings are the same everywhere.
    """
    return next(
        (
            one
            for node in nodes
            for one in within(node)
            if isinstance(one, ex.Call)
            and one.name != "error"
            and (one.name in CLOCKS or _is_unstable(one.name, len(one.children)))
        ),
        None,
    )


def _is_unstable(name: str, arguments: int) -> bool:
    forms = _unstable().get(name)
    return forms is not None and (arguments in forms or -1 in forms)


@cache
def _unstable() -> dict[str, frozenset[int]]:
    """The numbers of arguments with which functions are unstable; -1 for any."""
    answer = default_kernel().run(
        "SELECT DISTINCT lower(function_name) AS name, len(parameters) AS arguments, varargs IS NOT NULL AS more"
        " FROM duckdb_functions() WHERE function_type = 'scalar' AND (stability = 'VOLATILE'"
        " OR (stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameters) = 0 AND varargs IS NULL))",
        {},
    )
    found: dict[str, set[int]] = {}
    for row in answer.to_pylist():
        found.setdefault(row["name"], set()).add(-1 if row["more"] else row["arguments"])
    return {name: frozenset(forms) for name, forms in found.items()}
