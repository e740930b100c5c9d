"""The execution mode *scatter*: the owners of a few partitions are asked once each, and who asks combines the rows.

A light job over three members takes 3 to 8 ms, most of it for plans, tasklets, queues and frames, also where it carries
a handful of values. So there is a mode between *local*, which asks one member, and *distributed*, which runs a job.

A statement qualifies if it has two stages: one that reads tables where they are, and one that combines the rows of the
first. Each owner runs the first stage over its partitions as one kernel call and answers with the rows. The member that
coordinates runs the second, or the client that has asked merges the rows (:mod:`secateur.engine.sql.client_merge`). No
vertex, no edge and no queue is made, so a statement over five keys costs little more than five look-ups.

It is for few rows, since both calls hold all of them: an owner that finds more declines, and the statement runs as a
job.

Source: the scatter-gather of Elasticsearch and MongoDB's router; the map and reduce queries of Apache Ignite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.engine.sql.stage import ExchangeKind, QueryStage
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.column_type import SqlType, parse_type
from secateur.partitioning.types.empty_rows import empty_table
from secateur.wire import ShortTable


def can_scatter(scans: Sequence[ScanPlan], stages: Sequence[QueryStage]) -> bool:
    """Whether a statement in these stages may be scattered when its partitions are few."""
    if len(stages) != 2 or any(scan.is_fetched for scan in scans):
        return False
    first, last = stages
    return (
        not first.at_coordinator
        and first.exchange is ExchangeKind.GATHER
        and not first.order  # such rows are many, and are merged as they come
        and len(first.scans) == len(scans)
        and not all(scan.replicated for scan in scans)
        and not last.scans
        and last.inputs == (0,)
        and len(last.relations) == 1
        # Otherwise the first rows of the limit might be found before there are all.
        and (last.limit is None or last.fragment.is_row_by_row)
    )


def is_scattered(plan: SelectPlan, partitions: Sequence[Sequence[int]]) -> bool:
    """Whether a statement over these partitions, which are on several members, is scattered.

    They have to be at most ``SelectPlan.scatter_partitions_max``, and a part of each partitioned table: a statement
    that reads all of a table runs as a job, however few its partitions are.

    Args:
        plan: The statement.
        partitions: For each scan, the partitions to read.
    """
    if not plan.scatter_partitions_max:
        return False
    count = 0
    for scan, ids in zip(plan.scans, partitions, strict=True):
        if not scan.replicated:
            if len(ids) >= scan.tree.total:
                return False
            count += len(ids)
    return count <= plan.scatter_partitions_max


def partitions_by_member(
    plan: SelectPlan, partitions: Sequence[Sequence[int]], topology: Topology
) -> dict[str, list[list[int]]]:
    """The partitions that each owner has to read: for each scan its own, none of a replicated table."""
    found: dict[str, list[list[int]]] = {}
    for number, (scan, ids) in enumerate(zip(plan.scans, partitions, strict=True)):
        if not scan.replicated:
            ownership = topology.ownership(scan.group)
            for partition in ids:
                member = ownership.primary(partition)
                if member not in found:
                    found[member] = [[] for _ in plan.scans]
                found[member][number].append(partition)
    return found


def combined_rows(fragment: Fragment, parts: Sequence[pa.Table | ShortTable]) -> pa.Table:
    """The rows of a stage from all members, as one table.

    Args:
        fragment: The fragment of the stage.
        parts: The rows of each member, in any order. Without any there are no rows.
    """
    short = [part for part in parts if isinstance(part, ShortTable)]
    if short and len(short) == len(parts):
        columns = [[value for part in short for value in part.columns[index]] for index in range(len(fragment.columns))]
        return ShortTable(columns, sum(part.num_rows for part in short)).to_table(_fields(fragment.columns))
    tables = [part.to_table(_fields(fragment.columns)) if isinstance(part, ShortTable) else part for part in parts]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else empty_table(fragment.schema)


@lru_cache(maxsize=1024)
def _fields(columns: tuple[tuple[str, str], ...]) -> list[tuple[str, SqlType]]:
    return [(name, parse_type(text)) for name, text in columns]
