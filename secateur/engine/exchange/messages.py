"""The messages between the members of a running job: their types, and their form in a frame.

All are one-way. ``job_start`` goes from the coordinator to each participant, ``exchange`` between participants,
``job_done`` back to the coordinator, ``job_cancel`` from the coordinator to those that still run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, assert_never

from secateur.engine.exchange.transport import Payload
from secateur.engine.runtime.metrics import VertexMetrics
from secateur.errors import Error, ProtocolError, from_wire, to_wire

__all__ = [
    "OPS",
    "Credit",
    "ExchangeData",
    "ExchangeSlice",
    "JobCancel",
    "JobDone",
    "JobStart",
    "Message",
    "read_message",
    "write_message",
]

OPS: Final = frozenset({"job_start", "exchange", "job_done", "job_cancel"})


class JobStart(NamedTuple):
    """Run this plan. ``plan`` is a packed :class:`~secateur.engine.execution_plan.member_plan.MemberPlan`."""

    job: str
    sender: str
    plan: Payload


class ExchangeSlice(NamedTuple):
    """Consecutive rows of an exchange payload and the consumers they are for.

    Attributes:
        consumers: Local indexes of the processors of the destination vertex; each receives all the rows.
        rows: How many rows.
        size: Bytes that each consumer acknowledges when it takes them.
    """

    consumers: tuple[int, ...]
    rows: int
    size: int


class ExchangeData(NamedTuple):
    """Rows of one edge from one member to another. ``last`` says that no more will come from that member.

    Attributes:
        job: Job id.
        sender: Member id.
        edge: Index of the edge in the plan.
        sequence: Counts the messages of this edge between these members from 0.
        pieces: How the rows of ``payload`` are dealt, in order.
        last: Whether this is the end of the edge from this member.
        payload: Arrow IPC stream; empty without pieces.
    """

    job: str
    sender: str
    edge: int
    sequence: int
    pieces: tuple[ExchangeSlice, ...]
    last: bool
    payload: Payload


class Credit(NamedTuple):
    """The consumers on ``sender`` have taken ``size`` more bytes of an edge: its producer may send as many again."""

    job: str
    sender: str
    edge: int
    size: int


class JobDone(NamedTuple):
    """A participant has ended: ``error`` is the reason, None for success."""

    job: str
    sender: str
    error: Error | None
    metrics: tuple[VertexMetrics, ...]


class JobCancel(NamedTuple):
    """Stop. ``error`` is the first cause, which every processor's supplier is closed with."""

    job: str
    sender: str
    error: Error


Message = JobStart | ExchangeData | Credit | JobDone | JobCancel


def write_message(message: Message) -> tuple[dict[str, Any], Payload]:
    """Header and payload of a message; :func:`read_message` reads them back."""
    match message:
        case JobStart(job, sender, plan):
            return {"op": "job_start", "job": job, "from": sender}, plan
        case ExchangeData(job, sender, edge, sequence, pieces, last, payload):
            header = {
                "op": "exchange",
                "job": job,
                "from": sender,
                "edge": edge,
                "seq": sequence,
                "pieces": [[list(c), r, s] for c, r, s in pieces],
                "last": last,
            }
            return header, payload
        case Credit(job, sender, edge, size):
            return {"op": "exchange", "job": job, "from": sender, "edge": edge, "credit": size}, b""
        case JobDone(job, sender, error, metrics):
            return {
                "op": "job_done",
                "job": job,
                "from": sender,
                "failure": None if error is None else to_wire(error),
                "metrics": [m.to_wire() for m in metrics],
            }, b""
        case JobCancel(job, sender, error):
            return {"op": "job_cancel", "job": job, "from": sender, "failure": to_wire(error)}, b""
        case _:
            assert_never(message)


def read_message(header: Mapping[str, Any], payload: Payload) -> Message:
    """The message in a frame.

    Raises:
        ProtocolError: The header is not one of ours.
    """
    op = header.get("op")
    try:
        job, sender = str(header["job"]), str(header["from"])
        match op:
            case "exchange" if "credit" in header:
                return Credit(job, sender, int(header["edge"]), int(header["credit"]))
            case "exchange":
                pieces = tuple(_read_piece(*piece) for piece in header["pieces"])
                return ExchangeData(
                    job, sender, int(header["edge"]), int(header["seq"]), pieces, bool(header["last"]), payload
                )
            case "job_start":
                return JobStart(job, sender, payload)
            case "job_done":
                failure = header["failure"]
                metrics = tuple(VertexMetrics.from_wire(entry) for entry in header["metrics"])
                return JobDone(job, sender, None if failure is None else from_wire(failure), metrics)
            case "job_cancel":
                return JobCancel(job, sender, from_wire(header["failure"]))
            case _:
                raise ProtocolError(
                    f"a job message has the unknown op {op!r}; the engine knows {', '.join(sorted(OPS))}"
                )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(
            f"a {op!r} message cannot be read ({type(error).__name__}: {error}); do all members run the same version?"
        ) from error


def _read_piece(consumers: Any, rows: Any, size: Any) -> ExchangeSlice:
    piece = ExchangeSlice(tuple(int(consumer) for consumer in consumers), int(rows), int(size))
    if piece.rows < 0 or piece.size < 0:
        raise ValueError(f"a piece of {piece.rows} rows and {piece.size} bytes")
    return piece
