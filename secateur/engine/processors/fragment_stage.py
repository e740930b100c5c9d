"""A kernel fragment as a processor: gathers its inputs as relations, then answers once. The final stage of two-stage aggregation, sort, limit and join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Emitter, Processor
from secateur.dag.supplier import ProcessorSupplier, SupplierContext
from secateur.engine.batches import batches_of
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.processors.fragment_call import FragmentCall

__all__ = ["FragmentStageSupplier"]


@portable("fragment-stage")
class FragmentStageSupplier(ProcessorSupplier):
    """Makes processors that run a fragment over all their input.

    Args:
        fragment: What to run; its parameters are those of the job.
        inputs: For each input ordinal, the relation that it fills and its schema, which is what the relation has when no batch arrives.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, fragment: Fragment, inputs: Sequence[tuple[str, pa.Schema]]) -> None:
        self._fragment = fragment
        self._inputs = tuple(inputs)
        self._call: FragmentCall | None = None

    def init(self, context: SupplierContext) -> None:
        self._call = FragmentCall.of(self._fragment, context)

    def get(self, count: int) -> Sequence[Processor]:
        assert self._call is not None
        return [_FragmentStage(self._call, self._inputs) for _ in range(count)]

    def to_spec(self) -> Any:
        return [self._fragment.to_wire(), [[relation, schema.serialize().to_pybytes()] for relation, schema in self._inputs]]

    @classmethod
    def from_spec(cls, spec: Any) -> FragmentStageSupplier:
        fragment, inputs = spec
        return cls(Fragment.from_wire(fragment), [(relation, pa.ipc.read_schema(pa.py_buffer(schema))) for relation, schema in inputs])


class _FragmentStage(Processor):
    def __init__(self, call: FragmentCall, inputs: tuple[tuple[str, pa.Schema], ...]) -> None:
        self._call = call
        self._inputs = inputs
        self._gathered: list[list[pa.RecordBatch]] = [[] for _ in inputs]
        self._poll: Callable[[], pa.Table | None] | None = None
        self._emitter: Emitter | None = None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        self._gathered[ordinal].append(batch)
        return True

    def complete(self) -> bool:
        if self._emitter is None:
            if self._poll is None:
                self._poll = self._call.begin(self.context, self._relations())
            result = self._poll()
            if result is None:
                return False
            self._emitter = Emitter(self.outbox, batches_of(result))
        return self._emitter.emit()

    def _relations(self) -> dict[str, pa.Table]:
        relations = {}
        for (relation, schema), batches in zip(self._inputs, self._gathered, strict=True):
            relations[relation] = pa.Table.from_batches(batches) if batches else schema.empty_table()
        self._gathered.clear()
        return relations
