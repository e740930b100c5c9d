"""The mode of a statement that one member answers in every execution: nothing of it is divided.

Its partition trees yield one partition, or it reads replicated tables alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.engine.sql.select_plan import ScanPlan

ONE_PARTITION: Final = "one member answers it, unless pruning is off"
"""Why such a statement is not divided."""


def ends_on_one_partition(scans: Sequence[ScanPlan]) -> bool:
    """Whether every execution with parameters of the right types reads one partition at most, on one member.

    Several scans do where their partitions are the same by their trees, and on the same members. Replicated tables are
    everywhere.
    """
    if any(scan.is_fetched for scan in scans):
        return False
    partitioned = [scan for scan in scans if not scan.replicated]
    return len({(scan.group, scan.tree.root) for scan in partitioned}) <= 1 and all(
        scan.tree.is_single for scan in partitioned
    )
