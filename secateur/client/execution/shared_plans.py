"""Plans that texts share which differ only in literals: when the text without them may stand for all of them.

The first text of a kind is planned as it stands. At the second one, the text without literals is planned as well, and
shared from then on if nothing tells the two plans apart: same columns, same steps, same partitions for the literals of
the first. Otherwise, and where the text without literals is refused, every text of that kind has a plan of its own. So
a text that comes once costs nothing more, and errors at planning have their places in the user's text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from secateur.client.dbapi.parameters import values_of
from secateur.client.execution.routing import partitions_of
from secateur.client.execution.statement_cache import Cached, Prepared, cacheable
from secateur.client.execution.taken_literals import TakenText, take_literals
from secateur.errors import DatabaseError, OperationalError
from secateur.protocol.pruning import Pruning
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, InsertRows, SelectStatement

if TYPE_CHECKING:
    from secateur.client.session import Session


class SharedPlan(NamedTuple):
    """A statement without its literals.

    Attributes:
        text: The text.
        values: The literals, as parameters of it.
        prepared: Its plan.
        cached: Whether that was known before.
    """

    text: str
    values: list[Any]
    prepared: Prepared
    cached: bool


def shared_plan(session: Session, sql: str) -> SharedPlan | None:
    """The plan that a text without parameters shares with others; None where it has to have its own.

    Raises:
        OperationalError: The controller does not answer.
    """
    # A comparison with the user's own text needs that text.
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
    return SharedPlan(text, values, prepared, known is not None) if standing else None


def _stands(session: Session, first: str, shared: Cached | None) -> bool | None:
    """Whether a text without literals stands for others, by the plan of the first of them; None if that is gone."""
    if shared is None or isinstance(shared, InsertRows):
        return shared is not None  # values that are not exactly of their columns' types are evaluated as a text is
    written = session.statements.get(session.key_of(first), [])
    taken = take_literals(first)
    if written is None or taken is None:
        return None
    match written, shared:
        case SelectStatement(), SelectStatement():
            return _agree(session, written, shared, taken)
        case ChangeStatement(), ChangeStatement():
            return _agree(session, written.select, shared.select, taken)
        case CoordinatedChange(), CoordinatedChange():
            returned, returns = written.returning, shared.returning
            return (None if returned is None else returned.columns) == (
                None if returns is None else returns.columns
            ) and _agree(session, written.select, shared.select, taken)
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
    own, given = values_of(written, [], started), values_of(shared, taken.values, started)
    try:
        return session.when_known(
            lambda: all(
                list(partitions_of(scan, own)) == list(partitions_of(other, given))
                for scan, other in zip(written.scans, shared.scans, strict=True)
            )
        )
    except DatabaseError:
        return False
