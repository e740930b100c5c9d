"""The bounds that predicates set on the keys of one scan."""

from __future__ import annotations

from dataclasses import dataclass

from secateur.engine.sql.key_search import KeySearch
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.planner.prune.bounds import Boxes


@dataclass(frozen=True, slots=True)
class ScanBounds:
    """The key bounds of one scan.

    Attributes:
        factors: A conjunction of unions of boxes over the partitioning columns; usually one union.
        tree: The partitions that follow.
        keys: The search in the sorted partitions that follows.
        reason: The prune reason, or None.
        residual: Which of the conjuncts of the scan the user wrote about it and the search does not answer completely:
            they are tested on the rows that it finds.
    """

    factors: tuple[Boxes, ...]
    tree: PartitionTree
    keys: KeySearch
    reason: str | None
    residual: tuple[int, ...] = ()
