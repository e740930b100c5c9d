"""Plans that texts share which differ only in literals: when the text without them may stand for all of them.

The first text of a kind is planned as it stands. At the second one, the text without literals is planned as well, and
shared from then on if nothing tells the two plans apart: same columns, same steps, same partitions for the literals of
the first. Otherwise, and where the text without literals is refused, every text of that kind has a plan of its own. So
a text that comes once costs nothing more, and errors at planning have their places in the user's text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from secateur.client.dbapi.parameters import values_of
from secateur.client.execution.routing import partitions_of
from secateur.client.execution.statement_cache import Cached, Prepared, cacheable
from secateur.client.execution.taken_literals import TakenText, take_literals
from secateur.errors import DatabaseError, OperationalError
from secateur.protocol.pruning import Pruning
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, InsertRows, SelectStatement

if TYPE_CHECKING:
    from secateur.client.session import Session

_EQUAL: Final = ("columns", "empty", "deterministic", "merge", "reads_clock", "is_estimated")


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
    if standing is False:
        return None
    written = None if standing is None or standing is True else session.statements.get(session.key_of(standing), [])
    if standing is not True and written is None:
        session.standings.put(key, values, sql, ())  # this text is the first
        return None
    try:
        prepared = session.known(text, values)
        shared = SharedPlan(text, values, prepared or session.prepare_anew(text, values), prepared is not None)
    except OperationalError:
        raise
    except DatabaseError:
        if written is not None:
            session.standings.put(key, values, False, ())
        return None  # and the user's own text shows what is wrong, and where
    if written is None:
        return shared
    first = take_literals(cast("str", standing))
    kept = cacheable(shared.prepared)
    agrees = first is not None and kept is not None and _agrees(session, written, kept, first)
    session.standings.put(key, values, agrees, ())
    return shared if agrees else None


def _agrees(session: Session, written: Cached, shared: Cached, taken: TakenText) -> bool:
    """Whether nothing tells the plan of a text from that of the text without literals."""
    match written, shared:
        case InsertRows(), InsertRows():
            return written.mode is shared.mode and _columns_of(written) == _columns_of(shared)
        case SelectStatement(), SelectStatement():
            return _selects_agree(session, written, shared, taken)
        case ChangeStatement(), ChangeStatement():
            return written.kind is shared.kind and _selects_agree(session, written.select, shared.select, taken)
        case CoordinatedChange(), CoordinatedChange():
            return (
                written.duplicate_match == shared.duplicate_match
                and written.is_single_partition == shared.is_single_partition
                and (written.returning is None) == (shared.returning is None)
                and (
                    written.returning is None
                    or shared.returning is None
                    or written.returning.columns == shared.returning.columns
                )
                and _selects_agree(session, written.select, shared.select, taken)
            )
        case _:
            return False


def _columns_of(insert: InsertRows) -> tuple[str, ...] | None:
    return None if insert.template is None else insert.template.columns


def _selects_agree(session: Session, written: SelectStatement, shared: SelectStatement, taken: TakenText) -> bool:
    """Whether nothing tells the queries apart.

    Where estimates choose between plans, a bound of a range decides about them, and any other literal does not.
    """
    if (
        shared.typed
        or (taken.has_ranges and (written.is_estimated or shared.is_estimated))
        or any(getattr(written, name) != getattr(shared, name) for name in _EQUAL)
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
