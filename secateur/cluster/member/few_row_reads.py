"""Statements over few rows that a search by key finds: answered on the event loop from plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from secateur.engine.kernels.fragment import Fragment, KernelName
from secateur.engine.sql.select_plan import ScanPlan
from secateur.storage.member_store import MemberStore
from secateur.tracing import KernelSpan, is_traced
from secateur.wire import ShortTable

__all__ = ["FewRowsAnswer", "answer_few"]


class FewRowsAnswer(NamedTuple):
    """The answer of a fragment over few rows.

    Attributes:
        rows: Its rows.
        rows_read: How many rows it was computed from.
    """

    rows: ShortTable
    rows_read: int


def answer_few(
    store: MemberStore, scan: ScanPlan, fragment: Fragment | None, partitions: Sequence[int], params: Sequence[Any]
) -> FewRowsAnswer | None:
    """Answer a fragment over the rows of one scan, if they are few and the statement is simple.

    Args:
        store: The partitions of this member.
        scan: The scan.
        fragment: The fragment without the WHERE that the search by key decides; None where it decides none.
        partitions: The partitions to read, all of them here.
        params: The parameters of the statement, with the values of its expressions behind them.

    Returns:
        The answer; None if the rows have to be read as Arrow tables.

    Raises:
        UnknownTableError, TopologyChangedError: They are not here.
    """
    if fragment is None or fragment.arrow is None or scan.keys.direct is None:
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
    if not is_traced():
        rows = program.run(scan.columns, found, params)
    else:
        span = KernelSpan(fragment.sql)
        rows = program.run(scan.columns, found, params)
        if rows is not None:
            span.end(KernelName.ARROW.value, rows.num_rows)
    if rows is None:
        return None
    store.note_reads(scan.table_id, partitions)
    return FewRowsAnswer(rows, found.num_rows)
