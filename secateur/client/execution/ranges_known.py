"""Checks that a client still knows the ranges of a table, when its routing leaves no member to ask."""

from __future__ import annotations

from collections.abc import Sequence

from secateur.client.session import Session
from secateur.errors import TopologyChangedError
from secateur.protocol.catalog import GetTableVersions
from secateur.protocol.statements import RoutedScan


def check_ranges(session: Session, scans: Sequence[RoutedScan]) -> None:
    """Called when no partition can match.

    Where a table has gaps, others may have added ranges to it since, with rows: the controller knows.

    Every other statement goes to a member, which knows as well.

    Raises:
        TopologyChangedError: A table has other ranges by now.

    Cost: a round trip to the controller when a table has gaps, else nothing.
    """
    gappy = [scan for scan in scans if scan.tree.scheme.has_gaps]
    if not gappy:
        return
    known = session.ask(GetTableVersions([scan.table_id for scan in gappy])).message.tables
    for scan, version in zip(gappy, known, strict=True):
        if version != scan.table_version:
            raise TopologyChangedError(
                f"the ranges of {scan.table} have changed since the statement was planned: plan it again",
                table=scan.table,
            )
