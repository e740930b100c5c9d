"""The messages between the members of a running job: their types, and their form in a frame.

All are one-way. A start goes from the coordinator to each participant, rows and credit between participants, the end
back to the coordinator, and a cancellation from the coordinator to those who still run.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from secateur.engine.exchange.transport import Payload
from secateur.errors import Error, ProtocolError
from secateur.protocol.failure import Failure
from secateur.protocol.jobs import CancelRun, CreditRows, EndRun, ExchangeRows, RowsPiece, StartRun
from secateur.protocol.message import Notice
from secateur.protocol.metrics import VertexMetrics

__all__ = [
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


def write_message(message: Message) -> tuple[Notice, Payload]:
    """The notice and the payload of a message; :func:`read_message` is the inverse."""
    match message:
        case JobStart(job, sender, plan):
            return StartRun(job, sender), plan
        case ExchangeData(job, sender, edge, sequence, pieces, last, payload):
            return (
                ExchangeRows(job, sender, edge, sequence, tuple(RowsPiece(*piece) for piece in pieces), last),
                payload,
            )
        case Credit(job, sender, edge, size):
            return CreditRows(job, sender, edge, size), b""
        case JobDone(job, sender, error, metrics):
            return EndRun(job, sender, None if error is None else Failure.of(error), list(metrics)), b""
        case JobCancel(job, sender, error):
            return CancelRun(job, sender, Failure.of(error)), b""
        case _:
            assert_never(message)


def read_message(notice: Notice, payload: Payload) -> Message:
    """The message in a frame.

    Raises:
        ProtocolError: The notice is not one of a job.
    """
    match notice:
        case ExchangeRows(job, sender, edge, sequence, pieces, last):
            return ExchangeData(
                job,
                sender,
                edge,
                sequence,
                tuple(ExchangeSlice(piece.consumers, piece.rows, piece.size) for piece in pieces),
                last,
                payload,
            )
        case CreditRows(job, sender, edge, size):
            return Credit(job, sender, edge, size)
        case StartRun(job, sender):
            return JobStart(job, sender, payload)
        case EndRun(job, sender, failure, metrics):
            return JobDone(job, sender, None if failure is None else failure.to_error(), tuple(metrics))
        case CancelRun(job, sender, failure):
            return JobCancel(job, sender, failure.to_error())
        case _:
            raise ProtocolError(f"a {type(notice).__name__} is no message of a job")
