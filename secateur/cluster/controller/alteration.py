"""ALTER TABLE on the cluster: changes a table on all members, or on none.

The controller runs two phases, as it does for a load. Every member *prepares*: all that can fail fails here, such as a
range that is to be added over rows in the catch-all, or NULLs in a column that is to be NOT NULL. Then every member
*commits*: it takes the new table over, which cannot fail. Only when all have done so does the catalog say that the
table has changed, so no client can write to a new range, or with new columns, before every member knows it.

Where the catch-all is cut, and where columns change, members let no write in between the phases, under a lease that the
controller renews. When it is gone, they decide by themselves (:mod:`secateur.cluster.termination_protocol`).

**Invariant**: a member refuses a statement that was planned for other ranges than it knows, or for other columns: with
these the table has another id. A client with an old plan therefore has to plan again, and no row of a new range is
missed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import assert_never

from secateur.cluster.controller.catalog import encoded_table
from secateur.cluster.controller.cluster_state import GONE
from secateur.cluster.controller.two_phase_commit import Order, TwoPhaseCommit, carry_out
from secateur.cluster.peers import MemberCaller
from secateur.cluster.write_latch import renewed
from secateur.errors import MemberLostError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.catalog import AbortAlter, CommitAlter, PrepareAlter
from secateur.protocol.changes import HoldLoad, TwoPhaseKind


async def alter_table(members: MemberCaller, table: TableDef, hosted: Mapping[str, Sequence[int]]) -> None:
    """Have a table as it is to be on every member.

    One that is lost once all have prepared takes only its own copies with it.

    Args:
        members: How to reach the members.
        table: The table as it is to be.
        hosted: By member, the partitions that it keeps copies of, of all that can hold rows.

    Raises:
        SchemeError: A range to be added has rows in the catch-all. The table is as it was.
        NullKeyError: A column that is to be NOT NULL has NULLs. The table is as it was.
        MemberLostError: A member is gone, so new ranges want other owners; ``details`` has ``member``. The table is as
            it was.
        LoadFailedError: The members have given the change up: this controller had sent them nothing for too long. The
            table is as it was.
        OperationalError: A member could not prepare. The table is as it was.
    """
    load_id = uuid.uuid4().hex  # one for each try: members remember how one has ended
    commit = TwoPhaseCommit(hosted)

    async def give(member: str, order: Order) -> None:
        match order:
            case Order.PREPARE:
                await members.call(member, PrepareAlter(load_id, definition, list(hosted[member])))
            case Order.COMMIT:
                await members.call(member, CommitAlter(load_id))
            case Order.ABORT:
                await members.call(member, AbortAlter(load_id))
            case _:
                assert_never(order)

    async with renewed(members, hosted, HoldLoad(load_id, TwoPhaseKind.ALTER)):
        definition = await encoded_table(table)
        # The caller repeats an order to commit while its member lives: a member that does not answer is gone.
        await carry_out(commit, give, lambda _: False)
    for member in hosted:
        failure = commit.failures.get(member)
        if isinstance(failure, GONE) and not commit.is_committed:
            raise MemberLostError(
                f"member {member} left the cluster while table {table.name} was altered; nothing was changed",
                member=member,
            )
        if failure is not None:
            raise failure
