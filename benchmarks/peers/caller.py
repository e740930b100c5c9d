"""What a client process of a peer does: connect, answer, and call in a loop, as the harness asks over stdin.

An adapter implements :class:`Caller` for one peer and gives it to :func:`serve_calls`. A request is a line of JSON on
stdin, its reply a line on stdout:

- ``{"do": "connect", ...}``, with what the service said when it was ready: ``{}``
- ``{"do": "answer", "statement": name, "values": [...]}``: ``{"rows": [the rows of each of the values]}``
- ``{"do": "closed", "statement": name, "values": [...], "begin_s": t, "seconds": n, "threads": 1, "seed": n}``:
  ``{"latencies_us": [...], "elapsed_s": n, "processor_s": n}``
- ``{"do": "open", ..., "rate_per_s": n}``: the same

A reply ``{"cannot": why}`` says that the peer has no such statement, ``{"failed": text}`` that it could not do it.
What else the process and its libraries print goes to stderr. The process ends with its stdin.

This file needs nothing but Python, because every peer's environment reads it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from benchmarks.peers.pacing import Timed, closed_loop, open_loop, poisson_schedule
from benchmarks.peers.statements import Statement, statement_named

__all__ = ["Call", "Caller", "CannotAnswerError", "private_stdout", "serve_calls"]

Call = Callable[[Any], Sequence[Sequence[Any]]]
"""From the bound values of a statement to all rows of its answer, as Python values."""

_LATE_FACTOR = 2.0
"""An open loop that is behind its schedule stops after this many times its length."""


class CannotAnswerError(Exception):
    """The peer has no such statement; the message says why."""


class Caller(Protocol):
    """A client of a peer."""

    def connect(self, service: dict[str, Any]) -> None:
        """Connect to what the service described, or start the peer in this process."""

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        """The values as the peer wants them, made before anything is timed."""

    def call(self, statement: Statement) -> Call:
        """A function from bound values to rows.

        Raises:
            CannotAnswerError: There is no such statement here.
        """

    def close(self) -> None:
        """Disconnect."""


def serve_calls(caller: Caller) -> None:
    """Answer requests until stdin ends."""
    replies = private_stdout()
    try:
        for line in sys.stdin:
            replies.write(json.dumps(_answered(caller, json.loads(line)), default=str) + "\n")
            replies.flush()
    finally:
        caller.close()


def private_stdout() -> Any:
    """The stream for replies; whatever else is written to stdout goes to stderr from now on."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return ours


def _answered(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if request["do"] == "connect":
            caller.connect(request)
            return {}
        statement = statement_named(request["statement"])
        call = caller.call(statement)
        values = [caller.bound(statement, value) for value in request["values"]]
        if request["do"] == "answer":
            return {"rows": [[list(row) for row in call(value)] for value in values]}
        return _timed(call, values, request)
    except CannotAnswerError as why:
        return {"cannot": str(why)}
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}"}


def _timed(call: Call, values: Sequence[Any], request: dict[str, Any]) -> dict[str, Any]:
    begin_s, seconds = request["begin_s"], request["seconds"]
    before_s = time.process_time()
    if request["do"] == "closed":
        timed = closed_loop(call, values, begin_s=begin_s, seconds=seconds)
    else:
        due_s = poisson_schedule(request["rate_per_s"], seconds, request["seed"])
        timed = open_loop(call, values, due_s, begin_s=begin_s, give_up_s=_LATE_FACTOR * seconds)
    return _reply(timed, time.process_time() - before_s)


def _reply(timed: Timed, processor_s: float) -> dict[str, Any]:
    return {
        "elapsed_s": timed.elapsed_s,
        "processor_s": processor_s,
        "latencies_us": [round(latency, 1) for latency in timed.latencies_us],
    }
