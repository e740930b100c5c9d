"""The execution mode *scatter* from the client: it asks the owners of a few partitions itself, and merges their rows.

One round trip for all of them, where a member that coordinates costs another one. Consistency is that of a statement
which a member coordinates: each owner refuses partitions that are not its own, and answers once the changes that it
has read are acknowledged. Rows of two publications are never combined: each owner says which one it has read.

Whatever is out of the ordinary is left to a member: owners that have many rows or another publication than the others,
and errors in the data, which need not be errors of the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from secateur.client.execution.merged_rows import merge_rows
from secateur.client.member_calls import MEMBERS_AT_ONCE
from secateur.client.session import Session
from secateur.errors import DataError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.query import ExecuteFirstStage, FirstStageRows, ScatteredRun
from secateur.protocol.statements import SelectStatement
from secateur.wire import Answer, ShortTable, decode_tables


class OwnersAnswer(msgspec.Struct, frozen=True):
    """The answer of a statement whose owners the client has asked.

    Attributes:
        rows: Its rows.
        members: How many owners were asked.
        partitions_read: How many partitions they have read.
        topology_version: The newest owners of which one of them knows.
        statistics_version: As in :class:`~secateur.protocol.query.Executed`.
    """

    rows: pa.Table | ShortTable
    members: int
    partitions_read: int
    topology_version: int
    statistics_version: int


def ask_owners(
    session: Session, statement: SelectStatement, params: Sequence[Any], ids: Sequence[int], topology: Topology
) -> OwnersAnswer | None:
    """Run a statement whose partitions are on several members, if the client can merge their rows.

    Args:
        session: The connection.
        statement: The statement.
        params: Its parameters in order, plain.
        ids: The partitions of its only scan.
        topology: Their owners.

    Returns:
        The answer; None if a member has to coordinate the statement.

    Raises:
        Error: An owner cannot be reached, or refuses: as for a statement that one member answers.
    """
    merge = statement.merge
    if merge is None:
        return None
    (scan,) = statement.scans
    if not len(ids) < scan.tree.total or len(ids) > merge.partitions_max:
        return None
    by_owner: dict[str, list[int]] = {}
    primary = topology.ownership(scan.group).primary
    for partition in ids:
        by_owner.setdefault(primary(partition), []).append(partition)
    if len(by_owner) > MEMBERS_AT_ONCE or not session.scatter_backoff.is_due(statement.plan_id):
        return None
    topology.check_live(by_owner)
    run: ScatteredRun | None = ScatteredRun(list(by_owner), len(ids), scan.tree.total)
    values, asked = list(params), []
    for member, own in by_owner.items():
        asked.append((member, ExecuteFirstStage(statement.plan_id, values, [own], None, run)))
        run = None  # one of them is enough to list the statement
    try:
        answers = session.ask_members(asked)
    except DataError:
        return None
    said = [answer.message for answer in answers]
    if any(part.published != said[0].published for part in said if not part.is_declined):
        return None
    is_declined = any(part.is_declined for part in said)
    rows = None if is_declined else merge_rows(merge, [_rows(answer) for answer in answers])
    session.scatter_backoff.note(statement.plan_id, used=rows is not None)
    if rows is None:
        return None
    if isinstance(rows, pa.Table):
        rows = rows.rename_columns([column.name for column in statement.columns])
    return OwnersAnswer(
        rows,
        len(by_owner),
        len(ids),
        max(part.topology_version for part in said),
        max(part.statistics_version for part in said),
    )


def _rows(answer: Answer[FirstStageRows]) -> pa.Table | ShortTable:
    said = answer.message
    return decode_tables(answer.parts) if said.values is None else ShortTable(said.values, said.rows)
