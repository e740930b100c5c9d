"""The execution mode *none*: no partition can match, so the client answers with the rows that a query has over none."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from secateur.client.dbapi.rows import Rows
from secateur.client.execution.reads import PlacedRead, SelectResult
from secateur.client.execution.routing import ExecutionMode
from secateur.client.session import Session
from secateur.errors import TopologyChangedError
from secateur.protocol.catalog import GetTableVersions
from secateur.protocol.metrics import RunProfile
from secateur.protocol.statements import SelectStatement
from secateur.wire import decode_table


def answer_over_no_rows(read: PlacedRead) -> SelectResult | None:
    """The answer of a read of no partitions.

    Raises:
        TopologyChangedError: As :func:`check_nothing_new`.
    """
    call, statement = read.call, read.call.statement
    if read.route.execution_mode is not ExecutionMode.NONE:
        return None
    check_nothing_new(call.session, statement)
    assert statement.empty is not None
    empty = _decoded(statement.empty)
    stats = call.stats(ExecutionMode.NONE, 0, 0, statement.partitions_total, read.topology.version)
    return SelectResult(Rows(empty, statement.columns), stats, RunProfile(empty.num_rows, empty.nbytes, ()))


@lru_cache(maxsize=256)
def _decoded(empty: bytes) -> pa.Table:
    """The rows of a statement over none; they are the same object for every call."""
    return decode_table(empty, ranges=False)


def check_nothing_new(session: Session, statement: SelectStatement) -> None:
    """Called when no partition can match, so that no member is asked: each knows what has changed since.

    Where a table has gaps, others may have added ranges to it, with rows; where it has row policies, others may have
    created one. The controller knows.

    Raises:
        TopologyChangedError: There are other ranges or policies by now.

    Cost: a round trip to the controller when a table has gaps or row policies, else nothing.
    """
    scans = [scan for scan in statement.scans if scan.is_guarded or scan.tree.scheme.has_gaps]
    if not scans:
        return
    known = session.ask(GetTableVersions([scan.table_id for scan in scans])).message
    for scan, version in zip(scans, known.tables, strict=True):
        if version != scan.table_version or (scan.is_guarded and known.catalog_version > statement.catalog_version):
            raise TopologyChangedError(
                f"{scan.table} has changed since the statement was planned: plan it again", table=scan.table
            )
