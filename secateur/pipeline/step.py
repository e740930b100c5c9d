"""The parts of a pipeline: steps, each of which becomes a vertex, and the edges into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.edge import Edge, from_
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier
from secateur.dag.vertex import Vertex
from secateur.errors import DagError

Route = Callable[[Edge], Edge]
"""Configures an edge that is local and unicast so far."""
FIRST: Final = -1
"""The priority of an edge that is drained before the others."""


def is_local(edge: Edge) -> Edge:
    """The route of rows that stay where they are."""
    return edge


def to_one(edge: Edge) -> Edge:
    """All rows to one processor of the job."""
    return edge.all_to_one().distributed()


def anywhere(edge: Edge) -> Edge:
    """The rows by turns to the processors of all members."""
    return edge.distributed()


def to_all_first(edge: Edge) -> Edge:
    """All rows to every processor, before those of the other edges."""
    return edge.broadcast().distributed().with_priority(FIRST)


def to_owners(table: str) -> Route:
    """A route to the owners of the partitions of a table."""
    return lambda edge: edge.partitioned(table=table).distributed()


def by_key(columns: Sequence[str], priority: int = 0) -> Route:
    """A route to the owner of the key's partition."""
    return lambda edge: edge.partitioned(*columns).distributed().with_priority(priority)


Maker = ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor]


@dataclass(frozen=True, slots=True)
class StepInput:
    """An edge into a step: where the rows come from, and how they travel."""

    step: PipelineStep
    route: Route = is_local


@dataclass(frozen=True, slots=True, eq=False)
class PipelineStep:
    """A future vertex. Steps never change, so several branches may start from one.

    Attributes:
        name: The name of the vertex; a name that the user did not choose gets a number where several are equal.
        is_named: Whether the user chose it.
        vertex: Makes the processors, under the name so far.
        inputs: The edges into it, by ordinal.
    """

    name: str
    is_named: bool
    vertex: Vertex
    inputs: tuple[StepInput, ...] = ()


def made(
    kind: str,
    name: str | None,
    make: Callable[[], Maker],
    inputs: Sequence[StepInput] = (),
    local_parallelism: int | None = None,
) -> PipelineStep:
    """Make a step of some kind, which is also its name unless the user has chosen one.

    ``make`` makes an argument of :meth:`DAG.new_vertex`.

    Raises:
        DagError: ``make`` refused its arguments; names the stage.
    """
    label = kind if name is None else name
    try:
        vertex = Vertex.of(label, make(), local_parallelism)
    except DagError as error:
        after = " and ".join(f"{edge.step.name!r}" for edge in inputs)
        raise DagError(f"stage {label!r}{f' after {after}' if after else ''}: {error.message}") from error
    return PipelineStep(label, name is not None, vertex, tuple(inputs))


def steps_of(ends: Iterable[PipelineStep]) -> list[PipelineStep]:
    """Every step that leads to some others, and those, each once and after all that feed it."""
    found: dict[PipelineStep, None] = {}

    def visit(step: PipelineStep) -> None:
        if step not in found:
            for edge in step.inputs:
                visit(edge.step)
            found[step] = None

    for end in ends:
        visit(end)
    return list(found)


def dag_of(ends: Iterable[PipelineStep]) -> FrozenDAG:
    """The DAG of the steps that lead to some others.

    Raises:
        DagError: Two steps were given the same name, or an edge cannot be; names the stage. Or the whole would
            deadlock.
    """
    dag, names = DAG(), dict[PipelineStep, str]()
    steps = steps_of(ends)
    chosen = [step.name for step in steps if step.is_named]
    if len(set(chosen)) < len(chosen):
        twice = next(name for name in chosen if chosen.count(name) > 1)
        raise DagError(f"two stages were named {twice!r}; names are unique in a pipeline")
    taken, outputs = set(chosen), dict.fromkeys(steps, 0)
    for step in steps:
        names[step] = step.name if step.is_named else _free_name(step.name, taken)
        taken.add(names[step])
        dag.new_vertex(names[step], step.vertex.meta_supplier, step.vertex.local_parallelism)
        for ordinal, edge in enumerate(step.inputs):
            try:
                dag.edge(edge.route(from_(names[edge.step], outputs[edge.step]).to(names[step], ordinal)))
            except DagError as error:
                raise DagError(f"stage {names[step]!r}: {error.message}") from error
            outputs[edge.step] += 1
    return dag.freeze()


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
