"""Vertices and edges: what runs in a step, which output feeds which input, and how and in which order rows flow.

Source: Hazelcast Jet, ``com.hazelcast.jet.core.Vertex``, ``Edge`` and ``EdgeConfig``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec
from msgspec.structs import replace

from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, meta_supplier_of
from secateur.errors import DagError
from secateur.partitioning.schemes.scheme import PartitionScheme

QUEUE_BATCHES_MAX: Final = 16
QUEUE_BYTES_MAX: Final = 32 << 20
WINDOW_BYTES_MAX: Final = 16 << 20


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


class _Kind(msgspec.Struct, frozen=True, array_like=True):
    """A routing or a reach."""

    @property
    def name(self) -> str:
        """Its word in EXPLAIN, plans and diagrams."""
        return str(self.__struct_config__.tag)

    @property
    def words(self) -> str:
        """The word, and what else tells it from others of its kind."""
        return self.name


class Unicast(_Kind, frozen=True, array_like=True, tag="unicast"):
    """Each batch goes to one consumer; they take turns, and one without room is passed over.

    Distributed: to any consumer of the job.
    """


class UnmatchedRows(Enum):
    """The treatment of rows whose partition the destination does not read, on an edge partitioned like a table."""

    REFUSE = "refuse"
    """Rows of partitions whose owner takes no part are distributed over those that do; a row that belongs to no
    partition at all fails the job.
    """
    KEEP = "keep"
    """All of them are sent on: for a join that keeps rows without a match."""
    DROP = "drop"
    """They are not sent: for a join that needs a match.

    The destination's placement names the partitions that it reads.
    """


class Partitioned(_Kind, frozen=True, array_like=True, tag="partitioned"):
    """Each row goes to the consumer that its key selects: equal keys meet in one processor.

    Attributes:
        columns: The key columns. Keys of different integer widths agree; NULL is a key like any other.
        scheme: None: the key is hashed over the routing partitions of the job, all of which are distributed over the
            participants. With a table's scheme, a row goes to the member that owns its partition of that table (if it
            takes part): the rows meet the table's data. ``columns`` then take the place of the scheme's columns, in
            order; one may be given several times.
        table: In place of ``scheme``: the scheme that this table has when the job starts; ``columns`` may then be left
            out, for columns of the same names. A row without a partition of the table goes to any consumer, which must
            handle it: a sink of the table has a range made for it, or reports why it cannot be written.
        unmatched: With a scheme: what happens to rows whose partition the destination does not read.
    """

    columns: tuple[str, ...]
    scheme: PartitionScheme | None = None
    table: str | None = None
    unmatched: UnmatchedRows = UnmatchedRows.REFUSE

    @property
    def words(self) -> str:
        columns = f"({', '.join(self.columns)})" if self.columns else ""
        return f"{self.name}{columns}{'' if self.table is None else f' like {self.table}'}"


class Broadcast(_Kind, frozen=True, array_like=True, tag="broadcast"):
    """Every batch goes to every consumer. Distributed: on every participant."""


class Isolated(_Kind, frozen=True, array_like=True, tag="isolated"):
    """Producer i feeds consumer i modulo their number, so order is kept and chains stay separate. Always local."""


class AllToOne(_Kind, frozen=True, array_like=True, tag="all-to-one"):
    """All rows go to one consumer: the one that owns the routing partition of ``key``.

    Attributes:
        key: Edges with equal keys meet in the same consumer; different keys spread the load of several such edges.
        apart: Whether the consumer gets a separate input from each producing member, numbered from 0 in the order of
            the topology. The edge is then the only one into its destination, of which a member runs one processor.
    """

    key: str = ""
    apart: bool = False

    @property
    def words(self) -> str:
        return f"{self.name}({self.key})" if self.key else self.name


class FanOut(_Kind, frozen=True, array_like=True, tag="fan-out"):
    """Each batch goes to one consumer **on each** participant; on a member the consumers take turns.

    Local, it is unicast.
    """


Routing = Unicast | Partitioned | Broadcast | Isolated | AllToOne | FanOut


class Local(_Kind, frozen=True, array_like=True, tag="local"):
    """Rows stay on the member where they are made."""


class Distributed(_Kind, frozen=True, array_like=True, tag="distributed"):
    """Rows may go to any participant that runs the destination."""


class DistributedTo(_Kind, frozen=True, array_like=True, tag="to"):
    """All rows go to one member, which becomes a participant.

    Attributes:
        member: Its id.
    """

    member: str

    @property
    def words(self) -> str:
        return f"distributed to {self.member}"


Reach = Local | Distributed | DistributedTo


class EdgeConfig(msgspec.Struct, frozen=True, array_like=True):
    """Bounds of the queues of an edge.

    Attributes:
        queue_batches_max: Batches from producers on the same member that may wait for one consumer.
        queue_bytes_max: Their bytes.
        window_bytes_max: Bytes that one member may have sent to another on this edge before the receiver reports that
            processors have taken them.
    """

    queue_batches_max: int = QUEUE_BATCHES_MAX
    queue_bytes_max: int = QUEUE_BYTES_MAX
    window_bytes_max: int = WINDOW_BYTES_MAX

    def __post_init__(self) -> None:
        for name in ("queue_batches_max", "queue_bytes_max", "window_bytes_max"):
            if getattr(self, name) < 1:
                raise DagError(f"EdgeConfig.{name} is {getattr(self, name)}; it must be at least 1")


class Edge(msgspec.Struct, frozen=True, array_like=True):
    """A connection from an output of one vertex to an input of another. The methods return a changed copy.

    >>> edge = between("scan", "aggregate").partitioned("customer_id").distributed()
    >>> edge.routing.columns, edge.is_distributed
    (('customer_id',), True)

    Attributes:
        source: Name of the vertex that produces.
        source_ordinal: Its output, from 0 without gaps.
        destination: Name of the vertex that consumes.
        destination_ordinal: Its input, from 0 without gaps.
        routing: Which consumer gets which rows.
        reach: Which members the rows may go to.
        priority: Inputs with a smaller number are drained completely before one with a larger is read.
        config: Bounds of the queues.
    """

    source: str
    destination: str
    source_ordinal: int = 0
    destination_ordinal: int = 0
    routing: Routing = Unicast()
    reach: Reach = Local()
    priority: int = 0
    config: EdgeConfig = EdgeConfig()

    def __post_init__(self) -> None:
        if self.source == self.destination:
            raise DagError(f"edge {self.name} starts and ends at the same vertex; a DAG has no cycle")
        if self.source_ordinal < 0 or self.destination_ordinal < 0:
            raise DagError(f"edge {self.name} has a negative ordinal; ordinals count from 0")
        if isinstance(self.routing, Isolated) and not isinstance(self.reach, Local):
            raise DagError(
                f"edge {self.name} is isolated and distributed; an isolated edge is always local: use unicast or"
                " partitioned()"
            )
        if isinstance(self.routing, Partitioned):
            columns, scheme, table = self.routing.columns, self.routing.scheme, self.routing.table
            if table is not None and scheme is not None:
                raise DagError(
                    f"edge {self.name} is partitioned like the table {table!r} and by a scheme; give one of them"
                )
            if (table is None and not columns) or (scheme is None and len(set(columns)) != len(columns)):
                raise DagError(f"edge {self.name} is partitioned by {columns!r}; name at least one column, each once")
            if scheme is not None and len(columns) != len(scheme.columns):
                raise DagError(
                    f"edge {self.name} is partitioned by {columns!r}, but the scheme hashes {scheme.columns!r}; name as"
                    " many columns, in that order"
                )

    @property
    def name(self) -> str:
        """The edge in words, for messages."""
        return f"{self.source!r}[{self.source_ordinal}] -> {self.destination!r}[{self.destination_ordinal}]"

    @property
    def is_distributed(self) -> bool:
        return not isinstance(self.reach, Local)

    def unicast(self) -> Edge:
        """Each batch to one consumer; the default."""
        return replace(self, routing=Unicast())

    def partitioned(
        self,
        *columns: str,
        scheme: PartitionScheme | None = None,
        table: str | None = None,
        unmatched: UnmatchedRows = UnmatchedRows.REFUSE,
    ) -> Edge:
        """Each row to the consumer of its key; see :class:`Partitioned`."""
        return replace(self, routing=Partitioned(columns, scheme, table, unmatched))

    def broadcast(self) -> Edge:
        """Every batch to every consumer."""
        return replace(self, routing=Broadcast())

    def isolated(self) -> Edge:
        """Producer i to consumer i."""
        return replace(self, routing=Isolated())

    def all_to_one(self, key: str = "", *, apart: bool = False) -> Edge:
        """Everything to one consumer; see :class:`AllToOne`."""
        return replace(self, routing=AllToOne(key, apart))

    def fan_out(self) -> Edge:
        """Each batch to one consumer on each member."""
        return replace(self, routing=FanOut())

    def distributed(self) -> Edge:
        """Rows may go to every participant."""
        return replace(self, reach=Distributed())

    def distribute_to(self, member: str) -> Edge:
        """All rows go to one member, which becomes a participant."""
        return replace(self, reach=DistributedTo(member))

    def with_priority(self, priority: int) -> Edge:
        """Smaller numbers are drained first; 0 is the default."""
        return replace(self, priority=priority)

    def with_config(self, config: EdgeConfig) -> Edge:
        """Other bounds for the queues."""
        return replace(self, config=config)


@dataclass(frozen=True, slots=True)
class EdgeStart:
    """The first half of an edge; :meth:`to` completes it."""

    source: str
    source_ordinal: int

    def to(self, destination: Vertex | str, ordinal: int = 0) -> Edge:
        """The edge from the source to input ``ordinal`` of ``destination``."""
        return Edge(self.source, _name(destination), self.source_ordinal, ordinal)


def between(source: Vertex | str, destination: Vertex | str) -> Edge:
    """The edge from output 0 of a vertex to input 0 of another, local and unicast."""
    return Edge(_name(source), _name(destination))


def from_(source: Vertex | str, ordinal: int = 0) -> EdgeStart:
    """Start an edge at output ``ordinal`` of a vertex: ``from_(scan, 1).to(join, 0)``."""
    return EdgeStart(_name(source), ordinal)


def _name(vertex: Vertex | str) -> str:
    return vertex if isinstance(vertex, str) else vertex.name
