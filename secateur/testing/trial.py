"""One trial: a processor driven as the engine drives it, through one scenario, with every call checked."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

from secateur.dag.processor import Processor, ProcessorContext
from secateur.errors import JobCancelledError
from secateur.testing.scenario import Refusal, Scenario, refusals, split_input

T = TypeVar("T")

_IDLE_CALLS_MAX: Final = 1000
"""Calls in a row that may come to nothing: no batch accepted, no offload polled, no input taken."""


class TrialOffloads:
    """Runs offloads at once, and reports for some polls that they are not done.

    Attributes:
        polls: Polls so far: a processor that polls is waiting for something.
    """

    def __init__(self, polls_each: int) -> None:
        self._polls_each = polls_each
        self._open: _TrialOffload[Any] | None = None
        self.polls = 0

    def __call__(self, call: Callable[[], T], /, *, is_long: bool = False) -> _TrialOffload[T]:
        """Run a call; the ``offload`` of the processor's context."""
        assert self._open is None or self._open.is_over, (
            "it began a second offload before the first was done; a processor may have one at a time"
        )
        made = _TrialOffload(self, call, self._polls_each)
        self._open = made
        return made


class _TrialOffload(Generic[T]):
    def __init__(self, offloads: TrialOffloads, call: Callable[[], T], polls: int) -> None:
        self._offloads = offloads
        self._polls = polls
        self._value: T | None = None
        self._error: Exception | None = None
        try:
            self._value = call()
        except Exception as error:
            self._error = error

    @property
    def is_over(self) -> bool:
        return self._polls <= 0

    def done(self) -> bool:
        self._offloads.polls += 1
        self._polls -= 1
        return self._polls < 0

    def result(self) -> T:
        assert self._polls < 0, (
            "it asked an offload for its result before done() was true; that would block the event loop"
        )
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Trial:
    """Drives one processor to its end, or to where its scenario stops it, and closes it.

    Args:
        processor: Fresh.
        context: The context that initialises it; its offloads are ``offloads``.
        offloads: See :class:`TrialOffloads`.
        scenario: How to drive it.
        inputs: The batches of each inbound edge.
        priorities: The priority of each inbound edge.
        edges: Outbound edges.

    Attributes:
        outbox: The batches that it offered.
        calls: Calls made.
        slowest_s: Seconds of the longest call.
        slowest: Which call that was.
        is_cooperative: Whether the processor declares itself cooperative.
    """

    def __init__(
        self,
        processor: Processor,
        context: ProcessorContext,
        offloads: TrialOffloads,
        scenario: Scenario,
        inputs: Sequence[Sequence[pa.RecordBatch]],
        priorities: Sequence[int],
        edges: int,
    ) -> None:
        rng = random.Random(scenario.seed)
        # a processor with a thread of its own is never refused: its offers wait, or raise when the job has ended
        refusal = scenario.refusal if processor.cooperative else Refusal.NEVER
        cancel_after = None if processor.cooperative or scenario.stop_after is None else scenario.stop_after
        self.outbox = _TrialOutbox(edges, refusals(refusal, rng), cancel_after=cancel_after)
        self.calls = 0
        self.slowest_s = 0.0
        self.slowest = ""
        self.is_cooperative = processor.cooperative
        self._processor = processor
        self._context = context
        self._offloads = offloads
        self._scenario = scenario
        self._priorities = priorities
        self._inputs = [split_input(batches, scenario.cut, rng) for batches in inputs]
        self._rng = rng

    def run(self) -> bool:
        """Drive it. Returns whether it came to its end, False when the scenario stopped it before."""
        try:
            self._processor.init(self.outbox, self._context)
            return self._drive()
        except JobCancelledError:
            if self._scenario.stop_after is None:
                raise
            return False
        finally:
            self._processor.close()

    def _drive(self) -> bool:
        return all(self._call_until_true(doing, method, args) for doing, method, args in self._schedule())

    def _schedule(self) -> Iterator[tuple[str, Callable[..., bool], tuple[Any, ...]]]:
        processor = self._processor
        for priority in sorted(set(self._priorities)):
            waiting = {
                ordinal: deque(self._inputs[ordinal])
                for ordinal in range(len(self._inputs))
                if self._priorities[ordinal] == priority
            }
            turn = 0
            while waiting:
                wanted = processor.wanted
                ordinals = [ordinal for ordinal in waiting if wanted is None or ordinal in wanted] or list(waiting)
                ordinal = self._rng.choice(ordinals) if self._scenario.seed else ordinals[turn % len(ordinals)]
                turn += 1
                if waiting[ordinal]:
                    batch = waiting[ordinal].popleft()
                    yield f"process({ordinal}, {batch.num_rows} rows)", processor.process, (ordinal, batch)
                else:
                    del waiting[ordinal]
                    yield f"complete_edge({ordinal})", processor.complete_edge, (ordinal,)
        yield "complete()", processor.complete, ()

    def _call_until_true(self, doing: str, method: Callable[..., bool], args: tuple[Any, ...]) -> bool:
        idle = 0
        while True:
            if self._scenario.stop_after is not None and self.calls >= self._scenario.stop_after:
                return False
            before = (self.outbox.accepted, self._offloads.polls, self.outbox.refused is None)
            started = perf_counter()
            answer = method(*args)
            took_s = perf_counter() - started
            self.calls += 1
            if took_s > self.slowest_s:
                self.slowest_s, self.slowest = took_s, doing
            assert isinstance(answer, bool), (
                f"{doing} returned {answer!r}; return True when it is dealt with, False to be called again"
            )
            if answer:
                open_ = self.outbox.refused
                assert open_ is None, (
                    f"{doing} returned True although its offer of {open_ and open_[1].num_rows} rows was refused;"
                    " return False and offer again"
                )
                return True
            idle = (
                0 if (self.outbox.accepted, self._offloads.polls, self.outbox.refused is None) != before else idle + 1
            )
            assert idle <= _IDLE_CALLS_MAX, (
                f"{doing} returned False {idle} times in a row and nothing came of it; what does it wait for?"
            )


class _TrialOutbox:
    """Collects the offered batches, by edge, refuses as its scenario demands, and checks how the processor reacts.

    Args:
        edges: Outbound edges.
        refuse: For each offer whether it is refused.
        cancel_after: Offers after which every further one raises ``JobCancelledError``, as the outbox of a processor
            with a thread does when the job has ended; None for never.

    Attributes:
        received: The batches accepted, by edge.
        accepted: Offers accepted.
        refused: The batch that was refused last and has not been accepted since, with its edge (None: all of them);
            None when nothing is open.
    """

    def __init__(self, edges: int, refuse: Iterator[bool], *, cancel_after: int | None = None) -> None:
        self.received: list[list[pa.RecordBatch]] = [[] for _ in range(edges)]
        self.accepted = 0
        self.refused: tuple[int | None, pa.RecordBatch] | None = None
        self._refuse = refuse
        self._cancel_after = cancel_after

    @property
    def bucket_count(self) -> int:
        return len(self.received)

    def offer(self, batch: pa.RecordBatch) -> bool:
        return self._offered(None, batch)

    def offer_to(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        assert 0 <= ordinal < len(self.received), (
            f"it offered a batch to output {ordinal}, but has {len(self.received)} outbound edges"
        )
        return self._offered(ordinal, batch)

    def _offered(self, ordinal: int | None, batch: pa.RecordBatch) -> bool:
        assert isinstance(batch, pa.RecordBatch), (
            f"it offered a {type(batch).__name__}; processors exchange pyarrow.RecordBatch"
        )
        if self._cancel_after is not None and self.accepted >= self._cancel_after:
            raise JobCancelledError("the job has ended while the processor was offering a batch")
        if self.refused is not None and self.refused[0] == ordinal:
            assert batch is self.refused[1] or batch.equals(self.refused[1]), (
                f"after a refused offer of {self.refused[1].num_rows} rows it offered other {batch.num_rows} rows; "
                "offer the refused batch again before anything else, or its rows are lost (Emitter does that)"
            )
        if next(self._refuse):
            self.refused = (ordinal, batch)
            return False
        if self.refused is not None and self.refused[0] == ordinal:
            self.refused = None
        for received in self.received if ordinal is None else self.received[ordinal : ordinal + 1]:
            self._check_schema(received, batch)
            received.append(batch)
        self.accepted += 1
        return True

    @staticmethod
    def _check_schema(received: list[pa.RecordBatch], batch: pa.RecordBatch) -> None:
        if received:
            first = received[0].schema
            same = first.names == batch.schema.names and first.types == batch.schema.types
            assert same, f"it offered batches of different schemas to one edge:\n{first}\nand\n{batch.schema}"
