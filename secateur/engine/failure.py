"""Turns an exception inside a vertex into the error of the job."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

import secateur
from secateur.errors import Error, JobFailedError, MemberLostError


def located(error: BaseException, vertex: str, member: str, doing: str) -> Error:
    """Return the error with the place where it happened: the vertex, the member, and the call that the engine made.

    An error of our tree keeps its class, so that the client can act on it (retry after ``TopologyChangedError``). Any
    other exception was raised by user code and becomes :class:`JobFailedError` with its traceback: ``SystemExit``
    and ``CancelledError`` too, which would end the event loop of the member, or pass it by.
    """
    place = {"vertex": vertex, "member": member}
    if isinstance(error, Error):
        if error.details.keys() >= place.keys():
            return error
        placed = type(error)(f"{error.message} (vertex {vertex!r} on member {member})", **{**error.details, **place})
        placed.__cause__ = error
        return placed
    text = users_traceback(error)
    failed = JobFailedError(
        f"vertex {vertex!r} on member {member} failed in {doing}: {type(error).__name__}: {error}",
        **place,
        traceback=text,
    )
    failed.__cause__ = error
    return failed


_OURS: Final = str(Path(secateur.__file__).parent)


def users_traceback(error: BaseException) -> str:
    """Return the traceback of an exception and of its causes, without frames of this package if there are others.

    Frames of this package lead from the member to the function, and do not help to find the error in it.
    """
    whole = traceback.TracebackException.from_exception(error)
    pending: list[traceback.TracebackException | None] = [whole]
    while pending:
        part = pending.pop()
        if part is None:
            continue
        theirs = [frame for frame in part.stack if not frame.filename.startswith(_OURS)]
        part.stack = traceback.StackSummary.from_list(theirs or list(part.stack))
        pending += [part.__cause__, part.__context__, *(part.exceptions or ())]
    return "".join(whole.format())


def lost_member(member: str, cause: BaseException | None) -> MemberLostError:
    """The error of a job whose participant cannot be reached any more."""
    reason = "" if cause is None else f": {cause}"
    lost = MemberLostError(
        f"member {member} was lost while it took part in the job{reason}; a read may be repeated", member=member
    )
    lost.__cause__ = cause
    return lost
