"""Statements over few rows that a search by key finds: answered on the event loop from plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import force_setattr

from secateur.engine.kernels.fragment import Fragment, KernelName
from secateur.engine.sql.plain_join import compile_plain_join
from secateur.engine.sql.select_plan import ScanPlan
from secateur.storage.member_store import MemberStore
from secateur.tracing import KernelSpan, is_traced
from secateur.wire import ShortTable

if TYPE_CHECKING:
    from secateur.engine.kernels.arrow.plain_rows import PlainProgram


class FewRowsAnswer(NamedTuple):
    """The answer of a fragment over few rows.

    Attributes:
        rows: Its rows.
        rows_read: How many rows it was computed from.
    """

    rows: ShortTable
    rows_read: int


def answer_few(
    store: MemberStore, scan: ScanPlan, fragment: Fragment, partitions: Sequence[int], params: Sequence[Any]
) -> FewRowsAnswer | None:
    """Answer a fragment over the rows of one scan, if they are few and the statement is simple.

    Args:
        store: The partitions of this member.
        scan: The scan.
        fragment: The fragment, without its WHERE where the search by key decides all of it.
        partitions: The partitions to read, all of them here.
        params: The parameters of the statement, with the values of its expressions behind them.

    Returns:
        The answer; None if the rows have to be read as Arrow tables.

    Raises:
        UnknownTableError, TopologyChangedError: They are not here.
    """
    if fragment.arrow is None or scan.keys.direct is None:
        return None
    # Imported here, as the arrow kernel is everywhere: with its first scalar, Arrow loads pandas.
    from secateur.engine.kernels.arrow.plain_rows import plain_program

    program = plain_program(fragment.arrow)
    if program is None:
        return None
    prefixes = scan.keys.direct.prefixes(params)
    if prefixes is None:
        return None
    found = store.find_few(scan.table_id, partitions, scan.columns, prefixes, program.rows_max)
    if found is None:
        return None
    answer = _finished(fragment, program, scan.columns, found, params, found.num_rows)
    if answer is not None:
        store.note_reads(scan.table_id, partitions)
    return answer


def answer_few_joined(
    store: MemberStore,
    scans: Sequence[ScanPlan],
    fragment: Fragment,
    partitions: Sequence[Sequence[int]],
    params: Sequence[Any],
) -> FewRowsAnswer | None:
    """As :func:`answer_few`, for a join of the rows of several scans, each of which is searched by its key.

    Args:
        store: The partitions of this member.
        scans: The scans of stored tables.
        fragment: The fragment.
        partitions: For each scan the partitions to read, all of them here.
        params: The parameters of the statement, with the values of its expressions behind them.

    Raises:
        UnknownTableError, TopologyChangedError: They are not here.
    """
    if fragment.arrow is None:
        return None
    join = fragment.arrow.plain_join
    if join is None:
        keys = [() if scan.is_fetched else store.table(scan.table_id).primary_key for scan in scans]
        join = compile_plain_join(fragment.arrow, scans, keys.__getitem__) or False
        force_setattr(fragment.arrow, "plain_join", join)
    if join is False:
        return None
    from secateur.engine.kernels.arrow.plain_rows import plain_program

    program = plain_program(fragment.arrow)
    if program is None:
        return None

    def find(number: int, prefixes: Sequence[tuple[Any, ...]], rows_max: int) -> ShortTable | None:
        scan = scans[number]
        return store.find_few(scan.table_id, partitions[number], scan.columns, prefixes, rows_max)

    joined = join.run(find, params, program.rows_max)
    if joined is None or joined[0].num_rows > program.rows_max:
        return None
    answer = _finished(fragment, program, join.names, joined[0], params, joined[1])
    if answer is not None:
        for scan, read in zip(scans, partitions, strict=True):
            store.note_reads(scan.table_id, read)
    return answer


def _finished(
    fragment: Fragment,
    program: PlainProgram,
    names: Sequence[str],
    found: ShortTable,
    params: Sequence[Any],
    rows_read: int,
) -> FewRowsAnswer | None:
    """What a fragment answers over rows with columns of these names."""
    if not is_traced():
        rows = program.run(names, found, params)
    else:
        span = KernelSpan(fragment.sql)
        rows = program.run(names, found, params)
        if rows is not None:
            span.end(KernelName.ARROW.value, rows.num_rows)
    return None if rows is None else FewRowsAnswer(rows, rows_read)
