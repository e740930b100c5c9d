"""The profile that a member returns for a query: the figures of EXPLAIN ANALYZE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from secateur.engine.sql.select_job import merge_names, vertex_names
from secateur.engine.sql.select_plan import PinnedScan, SelectPlan
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.metrics import RunProfile, StageWork, VertexMetrics


def combined_profile(profiles: Sequence[RunProfile]) -> RunProfile:
    """The profile of a query in steps, from those of its parts in their order; the last one gave the result."""
    *steps, last = profiles
    work = [
        replace(entry, stage=f"step {number}: {entry.stage}")
        for number, step in enumerate(steps, 1)
        for entry in step.work
    ]
    return RunProfile(last.rows, last.bytes, (*work, *last.work))


def fetched_work(plan: SelectPlan) -> tuple[StageWork, ...]:
    """The reading of the external tables of a query by members, which came before the query ran over these rows."""
    return tuple(
        work
        for scan in plan.scans
        if isinstance(scan, PinnedScan) and scan.external is not None
        for work in scan.fetched.work
    )


def job_work(
    plan: SelectPlan, partitions: Sequence[Sequence[int]], topology: Topology, metrics: Sequence[VertexMetrics]
) -> list[StageWork]:
    """The work of the stages of a query on each member that took part.

    Args:
        plan: The query.
        partitions: For each scan, what was read.
        topology: The owners.
        metrics: The metrics of its job.
    """
    work = []
    names = vertex_names(plan)
    merges = merge_names(plan)
    vertices: list[tuple[str, tuple[int, ...]]] = []
    for index, stage in enumerate(plan.stages):
        vertices.append((names[index], stage.scans))
        if index in merges:
            vertices.append((merges[index], ()))
    for name, scans in vertices:
        read: Counter[str] = Counter()
        for number in scans:
            scan = plan.scans[number]
            if not scan.replicated:
                ownership = topology.ownership(scan.group)
                read.update(ownership.primary(partition) for partition in partitions[number])
        replicated = sum(plan.scans[number].replicated for number in scans)
        for entry in sorted(
            (entry for entry in metrics if entry.vertex == name), key=lambda entry: (len(entry.member), entry.member)
        ):
            sent = sum(output.sent_bytes for output in entry.outputs)
            made_rows, made_bytes = max(((output.rows, output.bytes) for output in entry.outputs), default=(0, 0))
            count = read[entry.member] + replicated
            work.append(
                work_of(
                    name,
                    entry.member,
                    partitions=count,
                    rows_in=entry.rows_in,
                    rows_out=made_rows,
                    bytes_out=made_bytes,
                    sent_bytes=sent,
                    kernel_s=entry.offload_s,
                    busy_s=entry.busy_s,
                )
            )
    return work


def work_of(
    stage: str,
    member: str,
    *,
    partitions: int = 0,
    rows_in: int = 0,
    rows_out: int = 0,
    bytes_out: int = 0,
    sent_bytes: int = 0,
    kernel_s: float = 0.0,
    busy_s: float = 0.0,
) -> StageWork:
    """The work of a stage on a member."""
    return StageWork(
        stage, member, partitions, rows_in, rows_out, bytes_out, sent_bytes, kernel_s * 1000, busy_s * 1000
    )
