"""Statements over few rows that a search by key finds: answered on the event loop from plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from secateur.engine.kernels.fragment import Fragment, KernelName
from secateur.engine.sql.plain_join import compile_plain_join
from secateur.engine.sql.select_plan import ScanPlan
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
