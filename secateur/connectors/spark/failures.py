"""Carries our errors across Spark: raised in a Python worker, raised again as the same class in the user's process.

Spark keeps only the text of a worker's exception: here without a traceback, which is about Spark's and our functions
and not about the user's. A note below the message ends it, and has the details; a reader of Spark's logs understands
it too::

    secateur.errors.NullKeyError: flights.tailnum is NOT NULL, but 1 of 10 rows have NULL there
    secateur-error: {"error": "NullKeyError", "details": {"table": "flights", "column": "tailnum"}}
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from secateur.errors import Error, InternalError, LoadFailedError, OperationalError, rebuilt

_NOTE: Final = "secateur-error: "
_NOTED: Final = re.compile(r"\n\s*" + re.escape(_NOTE) + r"(\{.*\})")
_WITHOUT_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
_OF_WORKERS: Final = "SPARK_AUTH_SOCKET_TIMEOUT"
"""A variable that Spark gives its Python workers, which end with the first exception."""
_OTHER_ENVIRONMENT: Final = (
    "PYTHON_VERSION_MISMATCH",
    "No module named 'secateur",
    "No module named 'pyarrow",
    "No module named 'numpy",
    "Cannot run program",
)
_SUMMARY_CHARACTERS_MAX: Final = 500


@contextmanager
def noted_errors(*, is_last: bool = True) -> Iterator[None]:
    """Have errors of ours leave a Spark worker as a message and the note that :func:`error_behind` recognises.

    Args:
        is_last: Whether Spark raises no other error behind it, of which alone it would tell without the traceback.
    """
    try:
        yield
    except Error as error:
        # json writes newlines as \n: the note is one line, whatever the details hold
        error.add_note(_NOTE + json.dumps({"error": type(error).__name__, "details": error.details}, default=str))
        if is_last and _OF_WORKERS in os.environ and not isinstance(error, InternalError):
            os.environ[_WITHOUT_TRACEBACK] = "1"
        raise


def error_behind(failure: BaseException, *, table: str, is_read: bool = False) -> Error:
    """Return, in the user's process, our error for a write, or a read, that Spark reports as failed.

    Returns:
        The error that a worker raised, as it was; an :class:`~secateur.errors.OperationalError` when Spark's workers
        are not in this Python environment; else a :class:`~secateur.errors.LoadFailedError`, or an OperationalError for
        a read, that starts with Spark's message. The caller raises it from ``failure``.
    """
    text = str(failure)
    noted = _NOTED.search(text)
    if noted is not None:
        note = json.loads(noted[1])
        message = text[: noted.start()].rpartition(f"secateur.errors.{note['error']}: ")[2]
        return rebuilt(note["error"], message, note["details"])
    if any(sign in text for sign in _OTHER_ENVIRONMENT):
        return OperationalError(
            f"Spark's Python workers do not run in this environment ({sys.executable}, Python"
            f" {platform.python_version()}): install secateur with the same Python on every executor and point"
            f" PYSPARK_PYTHON or spark.pyspark.python at it. Spark said: {_summary(text)}",
            table=table,
        )
    if is_read:
        return OperationalError(f"Spark could not read {table}: {_summary(text)}", table=table)
    return LoadFailedError(
        f"Spark could not write to {table}, and the table is unchanged: {_summary(text)}", table=table
    )


def _summary(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _SUMMARY_CHARACTERS_MAX else f"{shown[:_SUMMARY_CHARACTERS_MAX]}..."
