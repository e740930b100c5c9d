"""A stack of segments for functions that call themselves as deeply as a statement is nested.

A tree in JSON takes several frames for each level, so the thousand frames that the interpreter grants a thread end
early. ``sys.setrecursionlimit`` would grant more, but to the whole process, which may be the user's; and
where it changes while another thread is inside of :mod:`ast`, that thread fails. Every thread has frames of its own,
though. So a function that is decorated here, and is called when most frames of its thread are taken, runs in a new
thread, and its caller waits for it.

Few statements are nested that deeply, and to look at the stack costs a microsecond. So :func:`with_deep_stack` has a
call made on the thread's own stack first, and on segments only where that was not enough.

Source: segmented stacks, as of Go before 1.3 and of the Rust crate ``stacker``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from secateur.engine.kernels.duckdb.cancellation import check_cancelled
from secateur.errors import LimitExceededError

P = ParamSpec("P")
T = TypeVar("T")

_SEGMENT_FRAMES_MAX: Final = 400
"""Frames of one segment, of the thousand that a thread has by default. The rest is for calls between two decorated
functions, and for those through C, which the interpreter counts as well."""
_SEGMENTS_MAX: Final = 40
"""Bounds the threads that wait for each other, each of which takes a few pages of memory."""
FRAMES_MAX: Final = _SEGMENT_FRAMES_MAX * _SEGMENTS_MAX
"""The depth that is reached at least, unless a function that is not decorated calls itself too deeply."""


class _Here(threading.local):
    segments: int = 0  # 0 where calls stay on the stack of their thread


_here: Final = _Here()


def on_segmented_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function recurse more deeply than one thread allows, inside of :func:`with_deep_stack`.

    The recursion may go through other functions. It ends when the work of its thread was cancelled: nearly all that
    takes long while a large statement is planned comes by here.

    Raises:
        RecursionError: More than :data:`FRAMES_MAX` frames.
        JobCancelledError: The work was cancelled.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        check_cancelled()
        return (
            _in_new_segment(function, args, kwargs)
            if _here.segments and _is_segment_full()
            else function(*args, **kwargs)
        )

    return call


def with_deep_stack(function: Callable[[], T]) -> T:
    """Make a call, which may be repeated, and again on a segmented stack if it needs more frames than this thread has.

    Cost: of a call that needs them, twice its own, and 0.1 ms for each segment.

    Raises:
        RecursionError: More than :data:`FRAMES_MAX` frames.
    """
    if _here.segments:
        return function()
    try:
        return function()
    except RecursionError:
        pass
    _here.segments = 1
    try:
        return function()
    finally:
        _here.segments = 0


def nested_too_deeply() -> LimitExceededError:
    """The error for a statement that nobody reads."""
    return LimitExceededError(
        "the statement is nested too deeply to be read: write it flatter, or pass long lists as parameters",
        limit="nesting",
    )


def _is_segment_full() -> bool:
    """Whether this thread has taken as many frames as one segment may have."""
    try:
        sys._getframe(min(_SEGMENT_FRAMES_MAX, sys.getrecursionlimit() * 2 // 5))
    except ValueError:  # the stack is not that deep
        return False
    return True


def _in_new_segment(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    segments = _here.segments + 1
    if segments > _SEGMENTS_MAX:
        raise RecursionError(f"more than {FRAMES_MAX} frames")
    values: list[T] = []
    errors: list[BaseException] = []
    context = copy_context()

    def run() -> None:
        _here.segments = segments
        try:
            values.append(context.run(function, *args, **kwargs))
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, name="secateur-deep-statement", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the process may have no more threads
        raise RecursionError("no thread for more frames") from error
    thread.join()
    if errors:
        try:
            raise errors[0]
        finally:
            errors.clear()  # the traceback refers to this frame
    return values[0]
