"""Statements by their fingerprint: what texts that differ only in literals have cost together."""

from __future__ import annotations

import re
from typing import Final

SLOW_MS: Final = 10.0
"""A statement that reads every partition of a large table takes longer than this; a pruned one hardly ever."""

GROUPS: Final = (
    "SELECT *, coalesce(total_ms / nullif(sum(total_ms) OVER (), 0), 0) AS total_share,"
    " partitions_read / nullif(partitions_total, 0) AS kept_share"
    " FROM secateur.statement_summaries WHERE system IS NOT TRUE"
)
"""A row for each fingerprint, without those about the cluster itself. Percentiles and means are those of the newest
executions, which the members still list; ``executions`` and ``total_ms`` count all.
"""
EXECUTIONS: Final = (
    "SELECT * FROM secateur.newest_statements WHERE fingerprint = ? ORDER BY ended, started DESC LIMIT 20"
)
"""The running and the newest ended ones of a fingerprint. They are in the order of columns, which members sort without
DuckDB: an expression there took 6 ms more.
"""
RUNNING: Final = (
    "SELECT * FROM secateur.running_statements WHERE statement IS NOT NULL AND system IS NOT TRUE"
    " ORDER BY elapsed_ms DESC LIMIT 200"
)
"""Those that run or wait now, the longest first."""
_TREE: Final = re.compile(r"(?:^|; )((?:[^:;]|::)+): ")


def tables_of(tree: str | None) -> list[str]:
    """The tables of a partition tree such as ``orders: (p17 | $1); customers: all``, each once."""
    return list(dict.fromkeys(_TREE.findall(tree or "")))
