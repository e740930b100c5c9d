"""Serving programs: a plan whose answer is few rows found by key, compiled into one function.

Short statements are what a member mostly executes, and each small step on the way to their rows is met with cold
caches. A program is made once of a plan, the tables that it reads and the member's view of the cluster. It checks what
the general way checks, on the same state and in the same turn of the event loop, and then searches. Whatever it does
not certainly answer as the general way does, errors among it, it leaves to that. A row by key takes 61 calls of Python
functions at the member, where the general way took 97, and three quarters of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.native_answers import NativeAnswers
from secateur.cluster.member.statements.prepared_statements import (
    OwnView,
    PreparedStatements,
    check_state,
    read_here,
)
from secateur.engine.kernels.fragment import Fragment, KernelName
from secateur.engine.sql.plain_join import compile_plain_join
from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.protocol.query import Execute, Executed
from secateur.storage.member_store import MemberStore
from secateur.tracing import KernelSpan, is_traced
from secateur.wire import ShortTable

FewRowsRead: TypeAlias = Callable[[Sequence[Sequence[int]], Sequence[Any]], tuple[ShortTable, int] | None]
"""A function from the partitions of each scan, all of them here, and the parameters of a statement, with the values of
its expressions behind them, to rows, and how many rows of tables these were computed from; None if the rows have to be
read as Arrow tables.

It raises UnknownTableError and TopologyChangedError where the partitions are not here, or the lease has ended.
"""


def compile_few(store: MemberStore, scans: Sequence[ScanPlan], fragment: Fragment) -> FewRowsRead | None:
    """Compile a fragment over stored tables to a function over few rows, once for all executions of its plan.

    Such statements are answered on the event loop, from plain values.

    Args:
        store: The partitions of this member.
        scans: The scans that it reads, each of which is searched by its key.
        fragment: The fragment, without its WHERE where the search by key decides all of it.

    Returns:
        The function; None where the fragment needs more than a search and plain values.

    Raises:
        UnknownTableError: A table is not here.
    """
    if fragment.arrow is None:
        return None
    # Imported here, as the arrow kernel is everywhere: with its first scalar, Arrow loads pandas.
    from secateur.engine.kernels.arrow.plain_rows import plain_program

    program = plain_program(fragment.arrow)
    if program is None:
        return None
    rows_max, run = program
    names: Sequence[str]
    if len(scans) == 1:
        names, find = scans[0].columns, _search(store, scans[0], rows_max)
    else:
        names, find = _join(store, scans, fragment, rows_max)
    if find is None:
        return None
    tables = [scan.table_id for scan in scans]

    def read(partitions: Sequence[Sequence[int]], params: Sequence[Any]) -> tuple[ShortTable, int] | None:
        found = find(partitions, params)
        if found is None:
            return None
        span = KernelSpan(fragment.sql) if is_traced() else None
        rows = run(names, found[0], params)
        if rows is None:
            return None
        if span is not None:
            span.end(KernelName.ARROW.value, rows.num_rows)
        for table_id, numbers in zip(tables, partitions, strict=True):
            store.note_reads(table_id, numbers)
        return rows, found[1]

    return read


def _search(store: MemberStore, scan: ScanPlan, rows_max: int) -> FewRowsRead | None:
    direct = scan.keys.direct
    if direct is None or direct.is_span:
        return None
    prefixes_of, find_few = direct.compiled(), store.few_finder(scan.table_id, scan.columns)

    def find(partitions: Sequence[Sequence[int]], params: Sequence[Any]) -> tuple[ShortTable, int] | None:
        prefixes = prefixes_of(params)
        if prefixes is None:
            return None
        rows = find_few(partitions[0], prefixes, rows_max)
        return None if rows is None else (rows, rows.num_rows)

    return find


def _join(
    store: MemberStore, scans: Sequence[ScanPlan], fragment: Fragment, rows_max: int
) -> tuple[Sequence[str], FewRowsRead | None]:
    """The names of the columns of the joined rows, and how they are found; None if rows of a scan are not searched."""
    assert fragment.arrow is not None
    join = compile_plain_join(fragment.arrow, scans, lambda number: store.table(scans[number].table_id).primary_key)
    if join is None:
        return (), None
    finders = [store.few_finder(scan.table_id, scan.columns) for scan in scans]

    def find(partitions: Sequence[Sequence[int]], params: Sequence[Any]) -> tuple[ShortTable, int] | None:
        def few(number: int, prefixes: Sequence[tuple[Any, ...]], most: int) -> ShortTable | None:
            return finders[number](partitions[number], prefixes, most)

        joined = join.run(few, params, rows_max)
        return None if joined is None or joined[0].num_rows > rows_max else joined

    return join.names, find


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


class ServingPrograms:
    """Answers short statements by the programs of their plans. Lives on the member's event loop.

    A program is good for one view of the cluster.

    Args:
        native: Learns what is executed; None where there is no native executor.
    """

    def __init__(self, storage: MemberStorage, prepared: PreparedStatements, native: NativeAnswers | None) -> None:
        self._store = storage.store
        self._hot_keys = storage.hot_keys
        self._prepared = prepared
        self._plans = prepared.plans
        self._programs: dict[str, ServingProgram | None] = {}
        self._view: OwnView | None = None
        self._native = native

    def answer(self, plan: SelectPlan, asked: Execute) -> Served | None:
        """The answer of the program of a plan; None where it has none, or declines.

        Raises:
            Error: Of the execution.
        """
        view = self._prepared.view
        if self._view is not view or view is None:
            self._view = view = self._prepared.joined()
            self._programs.clear()
        try:
            program = self._programs[plan.plan_id]
        except KeyError:
            if len(self._programs) >= self._plans.kept_max:
                self._programs.clear()
            program = compile_program(plan, self._store, view, self._plans.statistics_version)
            self._programs[plan.plan_id] = program
            if self._native is not None:
                self._native.learn(plan)
        if program is None:
            return None
        served = program(asked)
        if served is not None:
            self._hot_keys.executed(plan, asked.params)
        return served
