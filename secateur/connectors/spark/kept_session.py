"""The connection that Spark's planning process keeps from one DataFrame to the next.

Spark plans every read in a Python process that it uses again, and ends when that has rested for a minute. So the next
read of the same cluster finds the connection open and the plan of its text known, and asks the owner of one key at
once: one round trip, where a new connection takes eight, and wakes the controller.

A kept connection knows no less than that of a client which stays connected: members refuse a plan of a table or view
that has changed, and the topology that they do not have.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from secateur.connectors.spark.endpoint import Endpoint
from secateur.errors import Error

if TYPE_CHECKING:
    from secateur.client.session import Session

R = TypeVar("R")

_kept: Final[dict[tuple[int, Endpoint], Session]] = {}
"""By the process, which a fork does not share its sockets with, and the cluster; none while it is in use."""


def with_kept_session(endpoint: Endpoint, work: Callable[[Session], R]) -> R:
    """Do some work over a kept connection, or else over a new one, which is kept if the work succeeds.

    Work that fails over a kept connection is done again over a new one: what was at the other end may have gone, and
    an error that is the user's comes again.

    Args:
        endpoint: The cluster.
        work: It may be done twice.

    Raises:
        Error: As the work, and as ``Endpoint.session``.
    """
    place = os.getpid(), endpoint
    kept = _kept.pop(place, None)
    if kept is not None:
        with suppress(Error):
            return _keeping(place, kept, work)
    return _keeping(place, endpoint.connected(timeout_s=None), work)


@atexit.register
def close_kept_sessions() -> None:
    """Close the connections that this process keeps; those that are in use stay open."""
    for place in [place for place in _kept if place[0] == os.getpid()]:
        _kept.pop(place).close()


def _keeping(place: tuple[int, Endpoint], session: Session, work: Callable[[Session], R]) -> R:
    """Do the work, and keep the connection unless it fails."""
    try:
        done = work(session)
    except BaseException:
        session.close()
        raise
    # A kept connection does not wait for a cluster that has changed or gone: a new one is made at once, which does.
    session.retry_s = session.controller_wait_s = 0.0
    if _kept.setdefault(place, session) is not session:  # another thread has kept one meanwhile
        session.close()
    return done
