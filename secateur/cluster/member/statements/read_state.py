"""Read versions in requests: join keys found by a step are used only if their rows have not changed since.

``mark`` in a request names a read of which the state is remembered: by every member that reads partitioned tables for
it, and for replicated ones, which change by publications alone, as the number of the last one in the answer. ``since``
in a later request asks for the same state of some of its scans.
"""

from __future__ import annotations

from collections.abc import Sequence

from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import KeysChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.query import Execute
from secateur.storage.member_store import MemberStore


def check_state(store: MemberStore, plan: SelectPlan, asked: Execute, topology: Topology) -> None:
    """Refuse a statement whose keys were found under other owners, or in other rows of replicated tables.

    Args:
        store: The tables of the member that was asked.
        plan: The statement.
        asked: The request.
        topology: The owners.

    Raises:
        KeysChangedError: So they were; nothing was done.
    """
    since = asked.since
    if since is None:
        return
    if since.topology_version != topology.version:
        raise KeysChangedError("the owners of partitions have changed since the keys were found")
    published = dict(since.published)
    for number in since.scans:
        scan = plan.scans[number]
        if scan.replicated and published.get(scan.table_id) != store.data_version(scan.table_id).published:
            raise KeysChangedError(f"{scan.table} has changed since its keys were found", table=scan.table)


def marks_of(plan: SelectPlan, asked: Execute) -> dict[int, str]:
    """The mark under which the rows of a partitioned scan were read before, by index of the scan.

    A scan that no stage reads was found to read the same rows as another one, whose rows stand for its own: that one is
    watched too, whichever of them the plan has kept.
    """
    since = asked.since
    if since is None:
        return {}
    read = {number for stage in plan.stages for number in stage.scans}
    watched = set(since.scans)
    tables = {plan.scans[number].table_id for number in watched - read}
    watched |= {number for number in read if plan.scans[number].table_id in tables}
    return {number: since.mark for number in sorted(watched) if not plan.scans[number].replicated}


def read_here(
    store: MemberStore, plan: SelectPlan, asked: Execute, partitions: Sequence[Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """Remember or check the state of what is about to be read, all of it here and in this turn of the loop.

    Returns:
        What the answer says of it.

    Raises:
        KeysChangedError: A table has changed since its keys were found.
    """
    for number, read_before in marks_of(plan, asked).items():
        scan = plan.scans[number]
        if partitions[number] and not store.marks.is_unchanged(
            read_before, scan.table_id, store.data_version(scan.table_id).changes
        ):
            raise KeysChangedError(f"{scan.table} has changed since its keys were found", table=scan.table)
    mark = asked.mark
    if mark is None:
        return ()
    for scan in plan.scans:
        if not scan.replicated:
            store.marks.note(mark, scan.table_id, store.data_version(scan.table_id).changes)
    return tuple((scan.table_id, store.data_version(scan.table_id).published) for scan in plan.scans if scan.replicated)
