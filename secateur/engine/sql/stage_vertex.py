"""A stage as a vertex: at the coordinator, at the owners of its scans' partitions, or at every participant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from secateur.dag.placement import OnCoordinator, OnMembers, OnPartitions, Placement, Unrestricted
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.sql.fragment_call import positional
from secateur.engine.sql.fragment_stage import FragmentStageSupplier
from secateur.engine.sql.member_scan import MemberScan
from secateur.engine.sql.select_plan import PinnedScan, ScanPlan
from secateur.engine.sql.stage import QueryStage
from secateur.partitioning.pruning.key_range import KeySlice

_REPLICATED_PARTITIONS: Final = (0,)


class StageScan(NamedTuple):
    """A scan of a statement whose partitions are known.

    Attributes:
        scan: Its plan.
        partitions: The partitions to read; ignored for a replicated table.
        published: The load that has to be the last one published at each member that reads, or None.
        search_keys: Whether bounds on the primary key replace the scan by a search.
        mark: The token under which the read version of a partitioned table is recorded, or None; see
            :mod:`secateur.storage.hosted_tables`.
        since: The token of an earlier read, since which the rows must not have changed; None accepts any state.
    """

    scan: ScanPlan
    partitions: tuple[int, ...]
    published: int | None
    search_keys: bool
    mark: str | None = None
    since: str | None = None


class StageVertex(ProcessorMetaSupplier):
    """The meta-supplier of a stage.

    A stage at the coordinator has an answer even if no row can reach it.

    Args:
        stage: The stage.
        scans: Its scans.
        inputs: The relations that its inputs fill, with their schemas.
        is_running: Whether it runs at all.
    """

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(
        self,
        stage: QueryStage,
        scans: Sequence[StageScan],
        inputs: Sequence[tuple[str, pa.Schema]],
        *,
        is_running: bool,
    ) -> None:
        self._stage = stage
        self._scans = tuple(scans)
        self._inputs = tuple(inputs)
        self._is_running = is_running
        self._owned: list[Mapping[str, tuple[int, ...]]] = []
        self._key_slices: list[KeySlice | None] = []

    def init(self, context: MetaContext) -> None:
        params = positional(context.params)
        self._owned = [
            {} if item.scan.replicated else context.owners(item.scan.group, item.partitions) for item in self._scans
        ]
        self._key_slices = [item.scan.keys.bind(params) if item.search_keys else None for item in self._scans]

    def placement(self) -> Placement:
        if not self._is_running:
            return OnMembers((), 1)
        if self._stage.at_coordinator:
            return OnCoordinator()
        found = [(item.scan.group, owned) for item, owned in zip(self._scans, self._owned, strict=True) if owned]
        if not found:
            return Unrestricted()
        if any(group != found[0][0] for group, _ in found):
            return OnMembers(tuple(dict.fromkeys(member for _, owned in found for member in owned)), 1)
        group, by_member = found[0]
        return OnPartitions(group, by_member if len(found) == 1 else _united([owned for _, owned in found]))

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {
            member: FragmentStageSupplier(
                self._stage.fragment, self._inputs, self._reads_of(member), self._stage.aliases
            )
            for member in members
        }

    def _reads_of(self, member: str) -> tuple[MemberScan, ...]:
        return tuple(
            MemberScan(
                relation=item.scan.relation,
                table_id=item.scan.table_id,
                partitions=_REPLICATED_PARTITIONS if item.scan.replicated else owned.get(member, ()),
                columns=item.scan.columns,
                key_slice=key_slice,
                published=item.published,
                rows=item.scan.fetched.rows if isinstance(item.scan, PinnedScan) else None,
                mark=item.mark,
                since=item.since,
            )
            for item, owned, key_slice in zip(self._scans, self._owned, self._key_slices, strict=True)
        )


def _united(several: Sequence[Mapping[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """The partitions of some scans of one affinity group, each once."""
    members = dict.fromkeys(member for owned in several for member in owned)
    return {
        member: tuple(sorted({partition for owned in several for partition in owned.get(member, ())}))
        for member in members
    }
