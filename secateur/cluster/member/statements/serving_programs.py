"""Serving programs: a plan whose answer is few rows found by key, compiled into one function.

Short statements are what a member mostly executes, and each small step on the way to their rows is met with cold
caches. A program is made once of a plan, the tables that it reads and the member's view of the cluster. It checks what
the general way checks, on the same state and in the same turn of the event loop, and then searches. Whatever it does
not certainly answer as the general way does, errors among it, it leaves to that. A row by key takes 61 calls of Python
functions at the member, where the general way took 97, and three quarters of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from secateur.cluster.member.statements.few_row_reads import compile_few
from secateur.cluster.member.statements.prepared_statements import OwnView
from secateur.cluster.member.statements.read_state import check_state, read_here
from secateur.engine.sql.select_plan import SelectPlan
from secateur.protocol.query import Execute, Executed
from secateur.storage.member_store import MemberStore

_NONE_OWNED: frozenset[int] = frozenset()
_REPLICATED = (0,)


Served: TypeAlias = tuple[Executed, Sequence[Sequence[int]]]
"""An answer, and the partitions of each scan that it was read from."""

ServingProgram: TypeAlias = Callable[[Execute], Served | None]
"""A function from an execution of a plan to its answer; None if it has to be executed the general way."""


def compile_program(
    plan: SelectPlan, store: MemberStore, view: OwnView, statistics_version: Callable[[], int]
) -> ServingProgram | None:
    """The program of a plan, good for as long as the member's view of the cluster is the same.

    Args:
        plan: The plan.
        store: The partitions of this member.
        view: The owners of partitions.
        statistics_version: The newest version of the statistics that this member has heard of.

    Returns:
        None if the plan has none.

    Raises:
        UnknownTableError: A table is not here.
    """
    fragment = plan.over_few_rows if len(plan.scans) == 1 else plan.local
    if not plan.scans or fragment is None or plan.reads_fetched_rows:
        return None
    read = compile_few(store, plan.scans, fragment)
    if read is None:
        return None
    tables = [(scan.table_id, scan.table_version) for scan in plan.scans]
    places = [
        (scan.tree, None, _NONE_OWNED)
        if scan.replicated
        else (scan.tree, scan.tree.bind_ids, view.mine.get(scan.group, _NONE_OWNED))
        for scan in plan.scans
    ]
    total, count = sum(scan.tree.total for scan in plan.scans), plan.bound_count
    topology_version, is_estimated, views = view.topology.version, plan.is_estimated, plan.views

    def serve(asked: Execute) -> Served | None:
        params = asked.params
        if len(params) != count or not asked.pruning or asked.as_written:
            return None
        for table_id, version in tables:
            if store.table(table_id).version != version:
                return None
        if views and not store.views.issuperset(views):
            return None
        if asked.since is not None:
            check_state(store, plan, asked, view.topology)
        partitions: list[Sequence[int]] = []
        partitions_read = 0
        for tree, bind, mine in places:
            ids: Sequence[int] = _REPLICATED
            if bind is not None:
                bound = bind(params)
                ids = tree.live_ids() if bound is None else bound
                if not mine.issuperset(ids):
                    return None
            partitions.append(ids)
            partitions_read += len(ids)
        few = read(partitions, params)
        if few is None:
            return None
        published = () if asked.mark is None and asked.since is None else read_here(store, plan, asked, partitions)
        statistics = statistics_version() if is_estimated else 0
        rows, values = few[0].num_rows, few[0].columns
        said = Executed(
            "local", partitions_read, total, topology_version, rows, values, None, False, published, (), statistics
        )
        return said, partitions

    return serve
