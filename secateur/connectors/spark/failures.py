"""Carries our errors across Spark: raised in a Python worker, raised again as the same class in the user's process.

Spark keeps only the text of a worker's exception. The worker therefore adds a note with the error's plain form; Python
prints notes after the message, so the note is in the text that the user's process gets, and a reader of Spark's logs
understands it too::

    secateur.errors.NullKeyError: flights.tailnum is NOT NULL, but 1 of 10 rows have NULL there
    secateur-error: {"error": "NullKeyError", "message": "flights.tailnum is ...", "details": {"table": "flights",
    "column": "tailnum"}}
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from secateur.errors import Error, LoadFailedError, OperationalError
from secateur.protocol.failure import Failure

__all__ = ["error_behind", "noted_errors"]

_NOTE: Final = "secateur-error: "
_NOTE_LINE: Final = re.compile(re.escape(_NOTE) + r"(\{.*\})")
_OTHER_ENVIRONMENT: Final = (
    "PYTHON_VERSION_MISMATCH",
    "No module named 'secateur",
    "No module named 'pyarrow",
    "No module named 'numpy",
    "Cannot run program",
)
_SUMMARY_CHARACTERS_MAX: Final = 500


@contextmanager
def noted_errors() -> Iterator[None]:
    """Add to errors of ours that leave a Spark worker the note by which :func:`error_behind` recognises them."""
    try:
        yield
    except Error as error:
        # json writes newlines as \n: the note is one line, whatever the message holds
        error.add_note(_NOTE + json.dumps(msgspec.structs.asdict(Failure.of(error)), default=str))
        raise


def error_behind(failure: BaseException, *, table: str, is_read: bool = False) -> Error:
    """Return, in the user's process, our error for a write, or a read, that Spark reports as failed.

    Args:
        failure: The exception that PySpark raised.
        table: The table that was written or read, for messages.
        is_read: Whether it was read.

    Returns:
        The error that a worker raised, as it was; an :class:`~secateur.errors.OperationalError` when Spark's workers
        are not in this Python environment; else a :class:`~secateur.errors.LoadFailedError`, or an OperationalError for
        a read, that starts with Spark's message. The caller raises it from ``failure``.
    """
    text = str(failure)
    noted = _NOTE_LINE.search(text)
    if noted is not None:
        return Failure(**json.loads(noted[1])).to_error()
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
