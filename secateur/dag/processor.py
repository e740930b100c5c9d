"""The processor contract: what runs inside a vertex, who calls it and when, and what its return values request.

The unit of work is an Arrow ``RecordBatch`` with the rows of many items, so one Python call is spread over thousands of
rows.

Source: Hazelcast Jet, ``com.hazelcast.jet.core.Processor`` and ``Outbox``; the order of calls is Jet's, the unit is a
batch instead of an item.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa

from secateur.errors import ParameterError

_JOB_LOGGER: Final = logging.getLogger("secateur.job")
if _JOB_LOGGER.level == logging.NOTSET:
    _JOB_LOGGER.setLevel(logging.INFO)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Params = Sequence[Any] | Mapping[str, Any]
"""The parameters of a job: by position or by name. A DAG that is built before they are known has :class:`Param`."""


class Outbox(Protocol):
    """The outputs of a processor: one *output* for each outbound edge, with the edge's source ordinal.

    An output refuses a batch until an earlier one has found room downstream; this is how a slow consumer slows its
    producers. The processor then returns False and offers **the same batch** again in the next call. Offers never block
    a cooperative processor. The outbox of a processor that is not cooperative waits inside ``offer`` instead and always
    returns True.

    Batches are shared by reference with every consumer on the member: a batch must not change after it was offered.
    """

    @property
    def bucket_count(self) -> int:
        """The number of outbound edges."""

    def offer(self, batch: pa.RecordBatch) -> bool:
        """Offer a batch to every outbound edge at once. True without any outbound edge.

        Returns:
            False when one output refuses; then no edge has received the batch.
        """

    def offer_to(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        """Offer a batch to one outbound edge.

        Returns:
            False when the output refuses.
        """


class Offload(Protocol, Generic[T_co]):
    """A call that runs in a thread of the member; see :meth:`ProcessorContext.offload`."""

    def done(self) -> bool:
        """Whether :meth:`result` would return without waiting."""

    def result(self) -> T_co:
        """The value of the call, or its exception raised. Only once :meth:`done`."""


class Offloader(Protocol):
    """Runs a call in a thread of the member.

    A call that is known to be long is marked as such: it waits for other long ones and does not delay short ones.
    """

    def __call__(self, call: Callable[[], T], /, *, is_long: bool = False) -> Offload[T]: ...


@dataclass(frozen=True, slots=True)
class ProcessorContext:
    """The surroundings of a processor.

    Attributes:
        job_id: Unique in the cluster.
        vertex: The name of the vertex.
        member: The id of the member that runs this processor.
        local_index: Position among the processors of the vertex on this member, from 0.
        global_index: Position among the processors of the vertex in the whole job, from 0.
        local_parallelism: Processors of the vertex on this member.
        total_parallelism: Processors of the vertex in the whole job.
        params: The parameters of the job.
        input_count: The number of inputs: inbound edges, or the members on an edge that keeps them apart.
        offload: Runs a call that releases the GIL (a kernel, numpy, I/O) in a thread and immediately returns an
            :class:`Offload`. A cooperative processor returns False until it is done; the engine calls it again then.
            One at a time for each processor.
    """

    job_id: str
    vertex: str
    member: str
    local_index: int
    global_index: int
    local_parallelism: int
    total_parallelism: int
    params: Params
    input_count: int
    offload: Offloader

    @property
    def logger(self) -> logging.Logger:
        """A logger whose lines the job keeps from level INFO on: ``job.logs()`` has them.

        Lines of all other loggers are kept as well, those that are enabled for their level: without a configuration of
        ``logging``, from WARNING on.
        """
        return _JOB_LOGGER


class Processor:
    """The worker inside a vertex. Override what is needed; the defaults do nothing and succeed.

    The engine calls, from one thread at a time and never again after an exception other than ``close``::

        init                                  once
        process(ordinal, batch)   *           while input comes; batches of different inbound edges alternate within
                                              one priority
        complete_edge(ordinal)                once an inbound edge is drained, until it returns True
        complete                              once all inbound edges are drained, until it returns True; first call
                                              of a source
        close                                 exactly once, also after a failed init, a failure elsewhere or a
                                              cancelled job

    A ``False`` from ``process``, ``complete_edge`` or ``complete`` asks to be called again **with the same arguments**:
    after a refused offer, once there is room; while an offload runs, once it has ended; otherwise soon, and less often
    the longer the calls make no progress, so that polling costs little.

    A source has no inbound edge: its ``complete`` produces until it returns True. A sink has no outbound edge.

    Attributes:
        cooperative: True promises that no call takes longer than about a millisecond or waits for anything; the
            processor then shares the member's event loop. False gives it a thread of its own, in which every call but
            the constructor runs and ``Outbox.offer`` waits for room.
        wanted: The ordinals from which it accepts batches now, or whose end it waits for; None for all. Batches of
            other inputs wait, and so do their producers. The engine reads it before each batch. Priorities come first:
            if none of the inputs of the current priority is wanted, all of them are read.
        outbox: Set by :meth:`init`.
        context: Set by :meth:`init`.
    """

    cooperative: bool = True
    wanted: Collection[int] | None = None
    outbox: Outbox
    context: ProcessorContext

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        """Take the outbox and the context. Overriders call ``super().init(outbox, context)`` first."""
        self.outbox = outbox
        self.context = context

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        """Handle one batch from the inbound edge with that ordinal.

        Args:
            ordinal: Destination ordinal of the edge.
            batch: The rows. May have no row: it then only carries the schema. Shared, so never changed in place.

        Returns:
            True when the batch has been processed completely.
        """
        raise NotImplementedError(f"{type(self).__name__} received a batch on ordinal {ordinal} but has no process()")

    def complete_edge(self, ordinal: int) -> bool:
        """One inbound edge has ended: nothing more will come from it. Returns True when dealt with."""
        return True

    def complete(self) -> bool:
        """All input has ended, or there never was any. Returns True when everything has been offered."""
        return True

    def close(self) -> None:
        """Release what the processor holds.

        Must not raise; after a failure, an exception of it is dropped in favour of the first cause.
        """


class Emitter:
    """Offers the batches of an iterator one after another and remembers the one that was refused.

    The shape of most ``process`` and ``complete`` methods::

        def complete(self) -> bool:
            if self._emitter is None:
                self._emitter = Emitter(self.outbox, self._make_batches())
            return self._emitter.emit()
    """

    __slots__ = ("_batches", "_outbox", "_refused")

    def __init__(self, outbox: Outbox, batches: Iterator[pa.RecordBatch]) -> None:
        self._outbox = outbox
        self._batches = batches
        self._refused: pa.RecordBatch | None = None

    def emit(self) -> bool:
        """Offer until refused (False) or exhausted (True)."""
        if self._refused is not None:
            if not self._outbox.offer(self._refused):
                return False
            self._refused = None
        for batch in self._batches:
            if not self._outbox.offer(batch):
                self._refused = batch
                return False
        return True


class Param(msgspec.Struct, frozen=True, array_like=True, tag="parameter"):
    """A placeholder for a parameter of the job, which each run binds.

    Attributes:
        key: Position from 0, or name.
    """

    key: int | str


def bind_value(value: Any, params: Params) -> Any:
    """Return the value itself, or the value of the parameter if it is a :class:`Param`.

    Raises:
        ParameterError: The job was started without that parameter.
    """
    if not isinstance(value, Param):
        return value
    key = value.key
    if isinstance(params, Mapping):
        if isinstance(key, str) and key in params:
            return params[key]
        raise ParameterError(
            f"the DAG needs the parameter {key!r}, but the job was started with"
            f" {', '.join(map(repr, params)) or 'no parameters'}"
        )
    if isinstance(key, int) and 0 <= key < len(params):
        return params[key]
    raise ParameterError(
        f"the DAG needs the parameter {key!r}, but the job was started with {len(params)} positional parameters"
    )
