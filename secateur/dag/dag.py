"""The DAG: a mutable builder that refuses every invalid step at once, and the frozen value that runs.

People see it as a text, as plain data for JSON, or as the diagram that becomes DOT and SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from secateur.dag.codec import EncodedDag, EncodedVertex, decode_supplier, encode_supplier
from secateur.dag.edge import Edge
from secateur.dag.processor import Params, Processor
from secateur.dag.supplier import NeedsOfQuery, ProcessorMetaSupplier, ProcessorSupplier
from secateur.dag.vertex import Vertex
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, Drawable
from secateur.errors import DagError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.codec import decode, encode
from secateur.protocol.job_description import JobRequirements


@dataclass(frozen=True, slots=True, eq=False)
class FrozenDAG(Drawable):
    """A complete and valid DAG. May run any number of times, also at once.

    Attributes:
        vertices: In topological order: each after all that feed it.
        edges: By topological position of the source, then source ordinal.
        inbound: The edges into each vertex, by destination ordinal.
        outbound: The edges out of each vertex, by source ordinal.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    inbound: Mapping[str, tuple[Edge, ...]]
    outbound: Mapping[str, tuple[Edge, ...]]

    def freeze(self) -> FrozenDAG:
        """Itself: it is frozen."""
        return self

    def needs(
        self, params: Params, table: Callable[[str], TableDef], needs_of: NeedsOfQuery | None = None
    ) -> JobRequirements:
        """Return the partitions and members that the job requires, as far as its vertices know them in advance.

        If a source does not know its requirements, the job requires none in particular.

        Args:
            params: The parameters of the job.
            table: Finds a table's description; raises ``UnknownTableError``.
            needs_of: Finds what a source that reads a SELECT requires; None where nobody can plan one.

        Raises:
            Error: A meta-supplier refuses its parameters or its table, or a SELECT is wrong.
        """
        found = JobRequirements(members=frozenset(member for edge in self.edges for member in edge.reach.named))
        for vertex in self.vertices:
            query = None if needs_of is None else vertex.meta_supplier.query(params)
            if needs_of is None or query is None:
                needs = vertex.meta_supplier.needs(vertex.name, params, table)
            else:
                needs = needs_of(query)
            if needs is not None:
                found |= needs
            elif not self.inbound[vertex.name]:
                return JobRequirements()
        return found

    def encoded(self, *, allow_code: bool = True) -> bytes:
        """The DAG as it travels; :meth:`decoded` reads it back.

        Args:
            allow_code: Whether functions may travel, by cloudpickle.

        Raises:
            SerializationError: A vertex cannot travel; the message names it.
        """
        return encode(
            EncodedDag(
                tuple(
                    EncodedVertex(
                        vertex.name,
                        vertex.local_parallelism,
                        encode_supplier(vertex.meta_supplier, allow_code=allow_code, vertex=vertex.name),
                    )
                    for vertex in self.vertices
                ),
                self.edges,
            )
        )

    @classmethod
    def decoded(cls, data: bytes | memoryview, *, allow_code: bool) -> FrozenDAG:
        """The DAG that :meth:`encoded` wrote, validated again.

        Raises:
            SerializationError: A vertex carries code that is not allowed or does not load.
            DagError: The DAG is not valid.
            ProtocolError: The bytes are not a DAG.
        """
        found, dag = decode(data, EncodedDag), DAG()
        for vertex in found.vertices:
            supplier = decode_supplier(
                vertex.supplier, ProcessorMetaSupplier, allow_code=allow_code, vertex=vertex.name
            )
            dag.vertex(Vertex(vertex.name, supplier, vertex.local_parallelism))
        for edge in found.edges:
            dag.edge(edge)
        return dag.freeze()

    def to_text(self) -> str:
        """One line for each vertex and, below it, one for each edge that leaves it.

        >>> from secateur.dag import DAG, Processor, between
        >>> dag = DAG()
        >>> _ = dag.new_vertex("scan", Processor, 2), dag.new_vertex("sum", Processor)
        >>> _ = dag.edge(between("scan", "sum").partitioned("k").distributed())
        >>> print(dag.to_text())
        scan x2
          -> sum partitioned(k) distributed
        sum
        """
        lines: list[str] = []
        for vertex in self.vertices:
            lines.append(" ".join([vertex.name, *_processors(vertex)]))
            lines += [f"  -> {edge.destination} {' '.join(edge.words)}" for edge in self.outbound[vertex.name]]
        return "\n".join(lines)

    def to_dict(self, placed: Mapping[str, tuple[Sequence[str], int]] | None = None) -> dict[str, Any]:
        """The ``dag`` object of EXPLAIN (FORMAT JSON).

        Args:
            placed: For each vertex that runs, the members it runs on and its processors on a member; a vertex that is
                not in it was dropped. Without, members are null: nothing is placed yet.
        """
        boxes: list[dict[str, Any]] = []
        for vertex in self.vertices:
            if placed is None:
                members, parallelism = None, vertex.local_parallelism
            else:
                names, parallelism = placed.get(vertex.name, ((), 0))
                members = list(names)
            boxes.append({"name": vertex.name, "members": members, "local_parallelism": parallelism})
        arrows = [
            {
                "from": edge.source,
                "to": edge.destination,
                "kind": edge.routing.name,
                "distributed": edge.is_distributed,
            }
            for edge in self.edges
        ]
        return {"vertices": boxes, "edges": arrows}

    def diagram(self) -> Diagram:
        """Draw a box for each vertex and an arrow for each edge.

        An arrow is bold if rows may leave the member, and dashed if its input is read late.
        """
        boxes = tuple(DiagramNode(vertex.name, tuple(_processors(vertex))) for vertex in self.vertices)
        arrows = tuple(
            DiagramEdge(
                edge.source,
                edge.destination,
                tuple(edge.words),
                edge.name,
                is_bold=edge.is_distributed,
                is_dashed=edge.priority > 0,
            )
            for edge in self.edges
        )
        return Diagram(boxes, arrows)

    def __iter__(self) -> Iterator[Vertex]:
        return iter(self.vertices)


def _processors(vertex: Vertex) -> list[str]:
    """How many processors of a vertex a member runs, in a text; nothing where the vertex does not say."""
    return [] if vertex.local_parallelism is None else [f"x{vertex.local_parallelism}"]


class DAG(Drawable):
    """Builds a DAG.

    Every method refuses what can never become valid; :meth:`freeze` checks the rest and ends the building.

    It can be printed and drawn at any time, even while it is incomplete.

    >>> from secateur.dag import between
    >>> dag = DAG()
    >>> _ = dag.new_vertex("numbers", Processor)
    >>> _ = dag.new_vertex("sum", Processor)
    >>> _ = dag.edge(between("numbers", "sum").all_to_one().distributed())
    >>> [v.name for v in dag.freeze()]
    ['numbers', 'sum']
    """

    def __init__(self) -> None:
        self._vertices: dict[str, Vertex] = {}
        self._edges: list[Edge] = []
        self._frozen: FrozenDAG | None = None

    def vertex(self, vertex: Vertex) -> DAG:
        """Add a vertex.

        Raises:
            DagError: The name is taken, or the DAG is frozen.
        """
        self._check_open()
        if vertex.name in self._vertices:
            raise DagError(f"the DAG already has a vertex {vertex.name!r}; vertex names are unique")
        self._vertices[vertex.name] = vertex
        return self

    def new_vertex(
        self,
        name: str,
        source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor],
        local_parallelism: int | None = None,
    ) -> Vertex:
        """Make a vertex, add it and return it; see :meth:`secateur.dag.vertex.Vertex.of`."""
        made = Vertex.of(name, source, local_parallelism)
        self.vertex(made)
        return made

    def edge(self, edge: Edge) -> DAG:
        """Add an edge between two vertices that are already there.

        Raises:
            DagError: A vertex is unknown, an ordinal is taken, the edge closes a cycle, or the DAG is frozen.
        """
        self._check_open()
        for end in (edge.source, edge.destination):
            if end not in self._vertices:
                raise DagError(
                    f"edge {edge.name} names the vertex {end!r}, which is not in the DAG; it has"
                    f" {', '.join(map(repr, self._vertices)) or 'none'}; add the vertex first"
                )
        for other in self._edges:
            if (other.source, other.source_ordinal) == (edge.source, edge.source_ordinal):
                raise DagError(
                    f"edge {edge.name}: output {edge.source_ordinal} of {edge.source!r} already feeds"
                    f" {other.destination!r}; use from_(..., ordinal)"
                )
            if (other.destination, other.destination_ordinal) == (edge.destination, edge.destination_ordinal):
                raise DagError(
                    f"edge {edge.name}: input {edge.destination_ordinal} of {edge.destination!r} is already fed by"
                    f" {other.source!r}; use to(..., ordinal)"
                )
        if edge.source in _reachable(edge.destination, _successors(self._edges)):
            raise DagError(f"edge {edge.name} closes a cycle: {edge.source!r} already depends on {edge.destination!r}")
        self._edges.append(edge)
        return self

    def freeze(self) -> FrozenDAG:
        """Check the whole and end the building; later calls return the same value.

        Raises:
            DagError: There is no vertex, ordinals have a gap, or edge priorities can deadlock. The DAG stays open then.
        """
        if self._frozen is None:
            if not self._vertices:
                raise DagError("the DAG has no vertex")
            complete = self._as_it_is()
            for name in complete.inbound:
                _check_contiguous(name, "input", [e.destination_ordinal for e in complete.inbound[name]])
                _check_contiguous(name, "output", [e.source_ordinal for e in complete.outbound[name]])
            _check_priorities(complete.inbound, self._edges)
            self._frozen = complete
        return self._frozen

    def to_text(self) -> str:
        """As :meth:`FrozenDAG.to_text`."""
        return self._as_it_is().to_text()

    def to_dict(self) -> dict[str, Any]:
        """As :meth:`FrozenDAG.to_dict`."""
        return self._as_it_is().to_dict()

    def diagram(self) -> Diagram:
        """As :meth:`FrozenDAG.diagram`."""
        return self._as_it_is().diagram()

    def _as_it_is(self) -> FrozenDAG:
        """Return what was built so far, in order, without the checks of :meth:`freeze`."""
        order = _topological_order(self._vertices, self._edges)
        inbound = {
            name: tuple(sorted((e for e in self._edges if e.destination == name), key=lambda e: e.destination_ordinal))
            for name in order
        }
        outbound = {
            name: tuple(sorted((e for e in self._edges if e.source == name), key=lambda e: e.source_ordinal))
            for name in order
        }
        return FrozenDAG(
            vertices=tuple(self._vertices[name] for name in order),
            edges=tuple(edge for name in order for edge in outbound[name]),
            inbound=MappingProxyType(inbound),
            outbound=MappingProxyType(outbound),
        )

    def _check_open(self) -> None:
        if self._frozen is not None:
            raise DagError("the DAG is frozen: it was built to its end, or a run has begun; build another one")


def _successors(edges: list[Edge]) -> dict[str, list[str]]:
    successors: dict[str, list[str]] = {}
    for edge in edges:
        successors.setdefault(edge.source, []).append(edge.destination)
    return successors


def _reachable(start: str, successors: Mapping[str, list[str]]) -> set[str]:
    seen = {start}
    waiting = [start]
    while waiting:
        for name in successors.get(waiting.pop(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen


def _topological_order(vertices: Mapping[str, Vertex], edges: list[Edge]) -> list[str]:
    """Kahn's algorithm; among the vertices that are free, the one added first comes first."""
    successors = _successors(edges)
    open_inputs = dict.fromkeys(vertices, 0)
    for edge in edges:
        open_inputs[edge.destination] += 1
    order = [name for name, count in open_inputs.items() if not count]
    for name in order:
        for successor in successors.get(name, ()):
            open_inputs[successor] -= 1
            if not open_inputs[successor]:
                order.append(successor)
    return order


def _check_contiguous(vertex: str, side: str, ordinals: list[int]) -> None:
    if ordinals != list(range(len(ordinals))):
        raise DagError(f"vertex {vertex!r} has {side} ordinals {ordinals}; they must count from 0 without a gap")


def _check_priorities(inbound: Mapping[str, tuple[Edge, ...]], edges: list[Edge]) -> None:
    """Refuse two inputs of different priority that share a vertex upstream.

    The shared vertex fills the queue of the input that waits, blocks, and so never feeds the input that is read: a
    deadlock. A small amount of data would pass, but a job that works until the data grow is worse than one that is
    refused.
    """
    predecessors: dict[str, list[str]] = {}
    for edge in edges:
        predecessors.setdefault(edge.destination, []).append(edge.source)
    for vertex, vertex_edges in inbound.items():
        upstream = [(edge, _reachable(edge.source, predecessors)) for edge in vertex_edges]
        for first, above_first in upstream:
            for second, above_second in upstream:
                shared = above_first & above_second
                if first.priority < second.priority and shared:
                    raise DagError(
                        f"vertex {vertex!r} reads {first.name} before {second.name}, but both come from"
                        f" {min(shared)!r}: it would block on the edge that waits and the job would deadlock; give both"
                        " edges the same priority, or read the source twice"
                    )
