"""Plans that texts share which differ only in literals: when the text without them may stand for all of them.

The first text of a kind is planned as it stands. At the second one, the text without literals is planned as well, and
shared from then on if nothing tells the two plans apart: same columns, same partitions for the literals of the first.
Otherwise, and where the text without literals is refused, every text of that kind has a plan of its own. So a text that
comes once costs nothing more, and errors of planning have their places in the user's text.

Partitions may be more than those of a plan of its own where literals contradict each other in columns that are no
partitioning keys: no row meets both, and only the text shows it.

The controller could judge better which texts have the same plan, but only after a round trip.
"""

from __future__ import annotations

import time

from secateur.client.dbapi.parameters import values_of
from secateur.client.execution.routing import partitions_of
from secateur.client.execution.statement_cache import Cached, Prepared, cacheable
from secateur.client.execution.statement_call import StatementCall
from secateur.client.execution.taken_literals import TakenText, take_literals
from secateur.client.session import Session
from secateur.errors import DatabaseError, OperationalError
from secateur.protocol.pruning import Pruning
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, InsertRows, SelectStatement


def shared_call(session: Session, sql: str, started_s: float) -> StatementCall[Prepared] | None:
    """The call of a text without parameters, as that of the text without literals; None where it has its own plan.

    ``started_s`` is ``time.perf_counter()`` when the user called.

    Raises:
        OperationalError: The controller does not answer.
    """
    # What is compared with the user's own text needs that text.
    taken = None if session.pruning is Pruning.VERIFY else take_literals(sql)
    if taken is None:
        return None
    text, values, _ = taken
    key = session.key_of(text)
    standing = session.standings.get(key, values)
    if standing is None:
        session.standings.put(key, values, sql, ())
    if standing is None or standing is False:
        return None
    try:
        known = session.known(text, values)
        prepared = known or session.prepare_anew(text, values)
    except OperationalError:
        raise
    except DatabaseError:  # the user's own text shows what is wrong, and where
        session.standings.put(key, values, False, ())
        return None
    if standing is not True:
        standing = _stands(session, standing, cacheable(prepared))
        session.standings.put(key, values, sql if standing is None else standing, ())
    if not standing:
        return None
    return StatementCall(session, text, values, prepared, known is not None, started_s, time.time())


def _stands(session: Session, first: str, shared: Cached | None) -> bool | None:
    """Whether a text without literals stands for others, by the plan of the first of them; None if that is gone."""
    if shared is None or isinstance(shared, InsertRows):
        return shared is not None  # values that are not exactly of their columns' types are evaluated as a text is
    written, taken = session.statements.get(session.key_of(first), []), take_literals(first)
    if written is None or taken is None:
        return None
    match written, shared:
        case SelectStatement(), SelectStatement():
            return _agree(session, written, shared, taken)
        case ChangeStatement(), ChangeStatement():
            return _agree(session, written.select, shared.select, taken)
        case CoordinatedChange(returning=returned), CoordinatedChange(returning=returns):
            same = (returned and returned.columns) == (returns and returns.columns)
            return same and _agree(session, written.select, shared.select, taken)
        case _:
            return False


def _agree(session: Session, written: SelectStatement, shared: SelectStatement, taken: TakenText) -> bool:
    """Whether nothing tells the queries apart.

    Where estimates choose between plans, a bound of a range decides about them, and any other literal does not.
    """
    if (
        shared.typed
        or (taken.has_ranges and (written.is_estimated or shared.is_estimated))
        or written.columns != shared.columns
        or (written.steps is None) != (shared.steps is None)
        or len(written.scans) != len(shared.scans)
    ):
        return False
    started = time.time()
    try:
        own, given = values_of(written, [], started), values_of(shared, taken.values, started)
        return session.when_known(
            lambda: all(
                list(partitions_of(scan, own)) == list(partitions_of(other, given))
                for scan, other in zip(written.scans, shared.scans, strict=True)
            )
        )
    except DatabaseError:
        return False
