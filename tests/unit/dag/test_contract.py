"""The small pieces of the contract: emitter, parameters, arguments, what makes processors."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from secateur.dag import (
    Emitter,
    JobConfig,
    Param,
    Processor,
    ProcessorSupplier,
    ReplicatedMetaSupplier,
    SupplierContext,
    bind_value,
    meta_supplier_of,
)
from secateur.errors import DagError, InternalError, ParameterError
from secateur.protocol import decode, encode


class RefusingOutbox:
    """Accepts every second offer."""

    bucket_count = 1

    def __init__(self) -> None:
        self.offered: list[int] = []
        self.accepted: list[int] = []

    def offer(self, batch: pa.RecordBatch) -> bool:
        value = batch.column(0)[0].as_py()
        self.offered.append(value)
        accept = len(self.offered) % 2 == 0
        if accept:
            self.accepted.append(value)
        return accept

    def offer_to(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self.offer(batch)


def batches(*values: int) -> Iterator[pa.RecordBatch]:
    for value in values:
        yield pa.record_batch({"x": [value]})


def test_emitter_offers_a_refused_batch_again_and_loses_none() -> None:
    outbox = RefusingOutbox()
    emitter = Emitter(outbox, batches(1, 2, 3))
    assert [emitter.emit() for _ in range(4)] == [False, False, False, True]
    assert outbox.accepted == [1, 2, 3]
    assert outbox.offered == [1, 1, 2, 2, 3, 3]


def test_emitter_of_nothing_is_done_at_once() -> None:
    assert Emitter(RefusingOutbox(), batches()).emit() is True


@pytest.mark.parametrize(
    ("value", "params", "bound"),
    [
        pytest.param(5, (), 5, id="constant"),
        pytest.param(Param(1), ["a", "b"], "b", id="position"),
        pytest.param(Param("c"), {"c": None}, None, id="name"),
    ],
)
def test_bind_value(value: object, params: object, bound: object) -> None:
    assert bind_value(value, params) == bound  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "params", "message"),
    [
        pytest.param(Param(1), ["a"], "needs the parameter 1, but the job was started with 1 positional", id="too few"),
        pytest.param(Param(-1), ["a"], "needs the parameter -1", id="negative"),
        pytest.param(
            Param("c"), {"d": 1}, "needs the parameter 'c', but the job was started with 'd'", id="other name"
        ),
        pytest.param(Param("c"), ["a"], "needs the parameter 'c'", id="name without names"),
        pytest.param(Param(0), {}, "started with no parameters", id="position without positions"),
    ],
)
def test_bind_value_of_a_missing_parameter(value: Param, params: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        bind_value(value, params)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"timeout_s": 0}, "timeout_s is 0", id="no time"),
        pytest.param({"timeout_s": float("nan")}, "timeout_s is nan", id="nan"),
        pytest.param({"result_bytes_max": 0}, "result_bytes_max", id="no result"),
        pytest.param({"kernel_bytes_max": 0}, "kernel_bytes_max", id="no memory"),
        pytest.param(
            {"on_member_lost": "retry"},
            "on_member_lost is 'retry'; it must be one of 'restart', 'fail'",
            id="no such choice",
        ),
        pytest.param(
            {"required_partitions": {"t": frozenset({-1})}}, r"required_partitions\['t'\]", id="negative partition"
        ),
        pytest.param({"required_partitions": {"t": frozenset({"1"})}}, "partition ids", id="text partition"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DagError, match=message):
        JobConfig(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(JobConfig(), id="default"),
        pytest.param(
            JobConfig("n", {"t": frozenset({3, 1}), "g": frozenset()}, False, 2.5, 100, "fail", 200), id="everything"
        ),
    ],
)
def test_job_config_round_trip(config: JobConfig) -> None:
    assert decode(encode(config), JobConfig) == config


def test_each_member_gets_its_own_copy_of_a_supplier() -> None:
    class Mine(ProcessorSupplier):
        pass

    original = Mine()
    suppliers = meta_supplier_of(original).get(["m1", "m2"])
    assert {type(s) for s in suppliers.values()} == {Mine}
    assert len({id(s) for s in [original, *suppliers.values()]}) == 3


def test_a_function_makes_one_processor_each() -> None:
    (supplier,) = meta_supplier_of(Processor).get(["m1"]).values()
    assert len({id(p) for p in supplier.get(3)}) == 3


def test_a_meta_supplier_is_taken_as_it_is() -> None:
    meta = ReplicatedMetaSupplier(ProcessorSupplier())
    assert meta_supplier_of(meta) is meta


def test_a_service_that_the_member_does_not_offer() -> None:
    context = SupplierContext("j", "v", "m1", 1, 1, (), {int: 5})
    assert context.service(int) == 5
    with pytest.raises(InternalError, match="vertex 'v' on member m1: the member offers no str"):
        context.service(str)


def test_a_processor_without_process_says_which() -> None:
    with pytest.raises(NotImplementedError, match="Processor received a batch on ordinal 2"):
        Processor().process(2, pa.record_batch({"x": [1]}))


def test_unused_contexts_raise_in_the_base_classes() -> None:
    with pytest.raises(DagError, match="makes no processors"):
        meta_supplier_of("text")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        ProcessorSupplier().get(1)
