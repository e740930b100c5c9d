"""Merges the ordered rows of a stage at the coordinator, with a separate input for each member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from secateur.dag.placement import OnCoordinator, Placement
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.processors.kernel import KernelSupplier
from secateur.engine.processors.merge import InputMerge
from secateur.engine.processors.sort_key import SortKey

_STEP_BYTES: Final = 4 << 20
"""Merged at a time, of each member: sorting three times as much takes twice as long as sorting three times a quarter of
it.
"""
_BYTES_MAX: Final = 1 << 30
"""A bound for thousands of members, of each of which about one step is kept."""


class MergeMembers(ProcessorMetaSupplier):
    """The vertex that merges: put an edge that keeps members apart before it.

    It holds a few megabytes of each member, and its edge as much.

    Args:
        keys: The order of the rows of each member; at least one.
    """

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, keys: Sequence[SortKey]) -> None:
        self._keys = tuple(keys)

    def placement(self) -> Placement:
        return OnCoordinator()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: _MergeMembersSupplier(self._keys) for member in members}


class _MergeMembersSupplier(KernelSupplier):
    """Runs only at the coordinator, so it is never sent."""

    def __init__(self, keys: tuple[SortKey, ...]) -> None:
        self._keys = keys

    def get(self, count: int) -> Sequence[Processor]:
        return [InputMerge(self.kernel, self._keys, _BYTES_MAX, step_bytes=_STEP_BYTES) for _ in range(count)]
