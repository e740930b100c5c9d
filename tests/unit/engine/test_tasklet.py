"""The states of a tasklet, turn by turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.dag import EdgeConfig, Processor
from secateur.engine import ElasticThreads, Scheduler
from secateur.engine.exchange import DirectOutbox, EdgeWriter, Inbox, LaneGroup, WaitingOutbox
from secateur.engine.runtime import Tasklet, TaskletInput, TaskletOwner, TaskletState
from secateur.errors import Error

S = TaskletState
BATCH = pa.record_batch({"x": [1]})


class Scripted(Processor):
    """Answers from lists, True when they are empty; copies its input to its output if there is room."""

    def __init__(self, *, cooperative: bool = True, copies: bool = False, **answers: list[Any]) -> None:
        self.cooperative = cooperative
        self.copies = copies
        self.answers = answers
        self.calls: list[str] = []
        self.may_go_on = threading.Event()

    def init(self, outbox: Any, context: Any) -> None:
        self.outbox = outbox

    def _answer(self, call: str) -> bool:
        self.calls.append(call)
        left = self.answers.get(call, [])
        answer: bool = left.pop(0) if left else True
        return answer

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if not self.cooperative:
            self.may_go_on.wait(10)
        if self.copies and not self.outbox.offer(batch):
            self.calls.append("refused")
            return False
        return self._answer("process")

    def complete_edge(self, ordinal: int) -> bool:
        return self._answer(f"complete_edge {ordinal}")

    def complete(self) -> bool:
        return self._answer("complete")


class Bench:
    """A tasklet with inbound edges of given priorities and one outbound edge that has room for one batch."""

    def __init__(self, processor: Processor, priorities: Sequence[int], executor: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        self.inboxes = [Inbox(EdgeConfig(), 1) for _ in priorities]
        self.output = Inbox(EdgeConfig(queue_batches_max=1), 1)
        group = LaneGroup([self.output])
        writers = [EdgeWriter(lambda batch: [(group, batch)], [self.output])]
        self.thread = None if processor.cooperative else ElasticThreads("scripted", 1, 1)
        outbox = (
            DirectOutbox(writers, "v")
            if processor.cooperative
            else WaitingOutbox(writers, "v", lambda: self.tasklet.wake_from_thread())
        )
        self.failures: list[Error] = []
        self.ended = asyncio.Event()
        self.tasklet = Tasklet(
            TaskletOwner("m1", Scheduler(loop, 0.01), loop, executor, executor, self.failures.append, self.ended.set),
            vertex="v",
            processor=processor,
            inputs=[
                TaskletInput(i, p, inbox) for i, (p, inbox) in enumerate(zip(priorities, self.inboxes, strict=True))
            ],
            outbox=outbox,
            thread=self.thread,
            writers=writers,
        )
        self.is_closed = False
        processor.init(outbox, None)

    def turn(self) -> TaskletState:
        self.tasklet.run()
        return self.tasklet.state

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.tasklet.close(lambda _: None)


def with_bench(processor: Scripted, priorities: Sequence[int], test: Callable[[Bench], Any]) -> None:
    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            bench = Bench(processor, priorities, executor)
            try:
                async with asyncio.timeout(20):
                    found = test(bench)
                    if found is not None:
                        await found
            finally:
                processor.may_go_on.set()
                bench.close()

    asyncio.run(run())


def test_a_source_completes_emits_its_end_and_ends() -> None:
    processor = Scripted(complete=[False, True])

    def turns(bench: Bench) -> None:
        assert bench.tasklet.state is S.COMPLETE
        assert [bench.turn() for _ in range(4)] == [S.COMPLETE, S.EMIT_DONE, S.END, S.END]
        assert bench.output.is_drained
        assert bench.ended.is_set()

    with_bench(processor, [], turns)
    assert processor.calls == ["complete", "complete"]


def test_a_batch_is_processed_until_it_is_dealt_with_before_the_end_of_its_edge() -> None:
    processor = Scripted(process=[False, True], **{"complete_edge 0": [False, True]})

    def turns(bench: Bench) -> None:
        assert bench.turn() is S.FILL_INBOX  # nothing is there
        bench.inboxes[0].put(BATCH)
        bench.inboxes[0].producer_done()
        assert [bench.turn() for _ in range(6)] == [
            S.PROCESS_INBOX,
            S.FILL_INBOX,
            S.COMPLETE_EDGE,
            S.COMPLETE,
            S.EMIT_DONE,
            S.END,
        ]

    with_bench(processor, [0], turns)
    assert processor.calls == ["process", "process", "complete_edge 0", "complete_edge 0", "complete"]


def test_an_edge_of_lower_priority_is_taken_once_those_before_it_have_ended() -> None:
    processor = Scripted()

    def turns(bench: Bench) -> None:
        bench.inboxes[0].put(BATCH)
        bench.inboxes[0].producer_done()
        assert bench.turn() is S.FILL_INBOX  # the edge of higher priority has nothing yet
        assert processor.calls == []
        bench.inboxes[1].producer_done()
        assert [bench.turn() for _ in range(4)] == [S.FILL_INBOX, S.FILL_INBOX, S.COMPLETE, S.EMIT_DONE]

    with_bench(processor, [1, 0], turns)
    assert processor.calls == ["complete_edge 1", "process", "complete_edge 0", "complete"]


def test_a_turn_that_cannot_move_the_output_out_calls_nothing() -> None:
    processor = Scripted(copies=True)

    def turns(bench: Bench) -> None:
        for _ in range(3):
            bench.inboxes[0].put(BATCH)
        bench.inboxes[0].producer_done()
        assert [bench.turn() for _ in range(2)] == [S.FILL_INBOX, S.FILL_INBOX]  # one queued, one held back
        before = list(processor.calls)
        assert [bench.turn() for _ in range(2)] == [S.FILL_INBOX, S.FILL_INBOX]
        assert processor.calls == before
        while bench.tasklet.state is not S.END:
            bench.output.take()
            bench.turn()

    with_bench(processor, [0], turns)
    assert processor.calls == ["process"] * 3 + ["complete_edge 0", "complete"]


def test_a_call_in_a_thread_is_awaited_and_returns_to_the_state_that_made_it() -> None:
    processor = Scripted(cooperative=False, process=[False, True])

    async def turns(bench: Bench) -> None:
        bench.inboxes[0].put(BATCH)
        bench.inboxes[0].producer_done()
        assert bench.turn() is S.AWAIT_CALL
        assert bench.turn() is S.AWAIT_CALL
        assert processor.calls == []
        processor.may_go_on.set()
        bench.tasklet.start()
        await bench.ended.wait()
        assert bench.tasklet.state is S.END

    with_bench(processor, [0], turns)
    assert processor.calls == ["process", "process", "complete_edge 0", "complete"]


@pytest.mark.parametrize("cooperative", [True, False], ids=["cooperative", "threaded"])
def test_close_ends_it_from_any_state(cooperative: bool) -> None:
    processor = Scripted(cooperative=cooperative, process=[False])

    def turns(bench: Bench) -> None:
        bench.inboxes[0].put(BATCH)
        assert bench.turn() is (S.PROCESS_INBOX if cooperative else S.AWAIT_CALL)
        bench.close()
        assert bench.tasklet.state is S.END
        processor.may_go_on.set()
        assert bench.turn() is S.END
        assert not bench.ended.is_set()

    with_bench(processor, [0], turns)


def test_an_answer_that_is_no_boolean_fails_the_job_and_names_the_call() -> None:
    processor = Scripted(complete=[None])

    def turns(bench: Bench) -> None:
        assert bench.turn() is S.COMPLETE
        (failure,) = bench.failures
        assert "complete() returned None" in str(failure)

    with_bench(processor, [], turns)


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        pytest.param(lambda: Scripted(), "Leave out cooperative=True", id="a processor of a user"),
        pytest.param(
            lambda: secateur.processors.map_batches(lambda batch: batch, cooperative=True).get(1)[0],
            "Leave out cooperative=True",
            id="a function of a user",
        ),
        pytest.param(
            lambda: secateur.processors.union().get(1)[0], "The vertex is one of secateur's own", id="no user's"
        ),
    ],
)
def test_who_holds_the_event_loop_is_told_once_what_to_do(
    make: Callable[[], Processor], advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            bench = Bench(make(), [0], executor)
            bench.tasklet.report_long_turn(0.2)
            bench.tasklet.report_long_turn(0.3)
            bench.tasklet.close(lambda _: None)

    asyncio.run(run())
    (record,) = caplog.records
    assert record.getMessage() == (
        "vertex 'v' held the event loop of member m1 for 200 ms in init(): lookups, writes and other jobs of that"
        f" member waited. {record.args[-1]}"
    )
    assert str(record.args[-1]).startswith(advice)
