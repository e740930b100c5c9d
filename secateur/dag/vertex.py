"""A vertex: its name, its processors' supplier, and how many of them run on a member."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, meta_supplier_of
from secateur.errors import DagError


@dataclass(frozen=True, slots=True, eq=False)
class Vertex:
    """A step of a DAG, as described; its resolved form on a member is the engine's ``VertexPlan``.

    Attributes:
        name: Unique in its DAG; errors, metrics and EXPLAIN use it.
        meta_supplier: Makes its processors.
        local_parallelism: Processors on each member; None: what the meta-supplier prefers. A source of partitions never
            gets more processors than partitions.
    """

    name: str
    meta_supplier: ProcessorMetaSupplier
    local_parallelism: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DagError(f"a vertex needs a non-empty name, not {self.name!r}")
        if not isinstance(self.meta_supplier, ProcessorMetaSupplier):
            raise DagError(
                f"vertex {self.name!r}: {self.meta_supplier!r} is not a ProcessorMetaSupplier; Vertex.of()"
                " and DAG.new_vertex() take suppliers and functions too"
            )
        if self.local_parallelism is not None and self.local_parallelism < 1:
            raise DagError(
                f"vertex {self.name!r}: local_parallelism is {self.local_parallelism}; it must be at least 1, or None"
                " for the default"
            )

    @classmethod
    def of(
        cls,
        name: str,
        source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor],
        local_parallelism: int | None = None,
    ) -> Vertex:
        """Make a vertex from anything that makes processors; see :func:`~secateur.dag.supplier.meta_supplier_of`.

        Raises:
            DagError: ``source`` makes no processors, or the name or parallelism is invalid.
        """
        return cls(name, meta_supplier_of(source), local_parallelism)
