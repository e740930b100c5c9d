"""One trial: a processor driven as the engine drives it, through one scenario, with every call checked.

A scenario says how the input is split, what the outbox refuses, and when the processor is stopped.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from itertools import count
from time import perf_counter
from typing import Any, Final, Generic, TypeVar, assert_never

import pyarrow as pa

from secateur.dag.processor import Processor, ProcessorContext
from secateur.errors import JobCancelledError

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
        self._outcome: Future[T] = Future()
        try:
            self._outcome.set_result(call())
        except Exception as error:
            self._outcome.set_exception(error)

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
        return self._outcome.result()


class Trial:
    """Drives a fresh processor through a scenario to its end, or to where that stops it, and closes it.

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

    After ``cancel_after`` offers, every further one raises ``JobCancelledError``, as the outbox of a processor with a
    thread does when the job has ended; None for never.

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


_BATCHES_MAX: Final = 200
"""A long input has batches of one row at its start only."""


class BatchSplit(Enum):
    """The way in which the rows of an input are split into batches."""

    AS_GIVEN = "input as it was given"
    WHOLE = "input in one batch"
    ONE_ROW = "batches of one row"
    WITH_EMPTY = "empty batches before, between and after"
    RANDOM = "batches of random sizes"


class Refusal(Enum):
    """Which offers the outbox refuses."""

    NEVER = "an outbox that accepts"
    FIRST = "an outbox that refuses each batch once"
    OFTEN = "an outbox that refuses each batch five times"
    RANDOM = "an outbox that refuses at random"
    AFTER_THREE = "an outbox that refuses every fourth offer"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to drive a processor.

    Attributes:
        cut: How inputs are split.
        refusal: Which offers the outbox refuses.
        offload_polls: How often an offload reports that it is not done.
        seed: Seeds all that is random, including the order in which inputs of one priority alternate; 0: strict order.
        stop_after: Calls after which the job is cancelled; None lets it end.
    """

    cut: BatchSplit
    refusal: Refusal
    offload_polls: int = 0
    seed: int = 0
    stop_after: int | None = None

    def __str__(self) -> str:
        parts = [self.cut.value, self.refusal.value]
        if self.offload_polls:
            parts.append(f"offloads that take {self.offload_polls} polls")
        if self.seed:
            parts.append(f"seed {self.seed}")
        if self.stop_after is not None:
            parts.append(f"cancelled after {self.stop_after} calls")
        return ", ".join(parts)


SCENARIOS: Final = (
    Scenario(BatchSplit.AS_GIVEN, Refusal.NEVER),
    Scenario(BatchSplit.WHOLE, Refusal.FIRST, offload_polls=1),
    Scenario(BatchSplit.ONE_ROW, Refusal.NEVER),
    Scenario(BatchSplit.ONE_ROW, Refusal.OFTEN, offload_polls=3),
    Scenario(BatchSplit.WITH_EMPTY, Refusal.FIRST),
    Scenario(BatchSplit.WITH_EMPTY, Refusal.AFTER_THREE, offload_polls=1),
    *(Scenario(BatchSplit.RANDOM, Refusal.RANDOM, offload_polls=seed % 3, seed=seed) for seed in range(1, 5)),
)
"""The scenarios that every processor runs through, the plainest first."""


def split_input(batches: Sequence[pa.RecordBatch], cut: BatchSplit, rng: random.Random) -> list[pa.RecordBatch]:
    """The rows of some batches in other batches, in their order."""
    match cut:
        case BatchSplit.AS_GIVEN:
            return list(batches)
        case BatchSplit.WHOLE:
            return [pa.concat_batches(batches)] if batches else []
        case BatchSplit.ONE_ROW:
            return list(_sliced(batches, lambda: 1))
        case BatchSplit.WITH_EMPTY:
            mixed = [batch.slice(0, 0) for batch in batches[:1]]
            for batch in batches:
                middle = batch.num_rows // 2
                mixed += [batch.slice(0, middle), batch.slice(0, 0), batch.slice(middle), batch.slice(0, 0)]
            return mixed
        case BatchSplit.RANDOM:
            return list(_sliced(batches, lambda: rng.choice((0, 1, 2, 3, 7, 100))))
        case _:
            assert_never(cut)


def _sliced(batches: Sequence[pa.RecordBatch], size: Callable[[], int]) -> Iterator[pa.RecordBatch]:
    made = 0
    for batch in batches:
        if not batch.num_rows:
            yield batch
        start = 0
        while start < batch.num_rows:
            length = size() if made < _BATCHES_MAX else batch.num_rows
            yield batch.slice(start, length)
            start += length
            made += 1


def refusals(refusal: Refusal, rng: random.Random) -> Iterator[bool]:
    """Whether each offer is refused, without end; offers are accepted again and again."""
    match refusal:
        case Refusal.NEVER:
            return (False for _ in count())
        case Refusal.FIRST:
            return (number % 2 == 0 for number in count())
        case Refusal.OFTEN:
            return (number % 6 != 5 for number in count())
        case Refusal.RANDOM:
            return (rng.random() < 0.5 for _ in count())
        case Refusal.AFTER_THREE:
            return (number % 4 == 3 for number in count())
        case _:
            assert_never(refusal)
