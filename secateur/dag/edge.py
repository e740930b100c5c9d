"""Edges: which output feeds which input, how rows are routed and how far, and in which order inputs are read.

Each routing and each reach answers here whatever is asked of it. Only the lanes to the consumers are elsewhere: in
``engine/exchange/routes.py``.

Source: Hazelcast Jet, ``com.hazelcast.jet.core.Edge`` and ``EdgeConfig``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from secateur.dag.placement import OnPartitions, Placement
from secateur.errors import DagError
from secateur.partitioning.schemes.hashing import hash_values, pmod
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology

if TYPE_CHECKING:
    from secateur.dag.vertex import Vertex

T = TypeVar("T")

ROUTING_PARTITIONS: Final = 271
"""Routing partitions of a job; all of them are distributed over the participants.

Prime, so that it shares no factor with bucket counts.
"""

QUEUE_BATCHES_MAX: Final = 16
QUEUE_BYTES_MAX: Final = 32 << 20
WINDOW_BYTES_MAX: Final = 16 << 20


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


class _Routing(_Kind, frozen=True, array_like=True):
    """Which consumer gets which rows."""

    is_copied: ClassVar[bool] = False
    """Whether one batch may go to several members, so that it is encoded once for all of them."""

    @property
    def apart(self) -> bool:
        """Whether the consumer gets a separate input from each member; see :class:`AllToOne`."""
        return False

    @property
    def meeting_columns(self) -> tuple[str, ...] | None:
        """The columns whose equal values meet in one processor, none if all rows do; else, or like a table, None."""
        return None

    def problem(self, reach: Reach) -> str | None:
        """What is wrong with an edge of this routing and that reach, as the end of a sentence; None if it may be."""
        return None

    def targets(self, members: Sequence[str]) -> Sequence[str]:
        """The members that get rows, of those that the rows of one member may go to."""
        return members

    def resolved(self, edge: str, table: Callable[[str], TableDef]) -> Self | Unicast:
        """What it is when a job starts, for an edge of that name; ``table`` finds a table that it names."""
        return self

    def owners(self, targets: Sequence[str], topology: Topology, destination: Placement) -> npt.NDArray[np.uint16]:
        """The owner of each partition by which rows are routed, uint16, as an index into ``targets``.

        There is at least one target. Their number in place of an index says that the rows are dropped.
        """
        return np.empty(0, dtype=np.uint16)


class Unicast(_Routing, frozen=True, array_like=True, tag="unicast"):
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


class Partitioned(_Routing, frozen=True, array_like=True, tag="partitioned"):
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

    @property
    def meeting_columns(self) -> tuple[str, ...] | None:
        return self.columns if self.scheme is None and self.table is None else None

    def problem(self, reach: Reach) -> str | None:
        columns, scheme, table = self.columns, self.scheme, self.table
        if table is not None and scheme is not None:
            return f"partitioned like the table {table!r} and by a scheme; give one of them"
        if (table is None and not columns) or (scheme is None and len(set(columns)) != len(columns)):
            return f"partitioned by {columns!r}; name at least one column, each once"
        if scheme is not None and len(columns) != len(scheme.columns):
            return (
                f"partitioned by {columns!r}, but the scheme hashes {scheme.columns!r}; name as many columns, in that"
                " order"
            )
        return None

    def resolved(self, edge: str, table: Callable[[str], TableDef]) -> Self | Unicast:
        """With the scheme of the table. For a replicated table, which every member has, any consumer will do."""
        if self.table is None:
            return self
        like = table(self.table)
        if like.replicated or not like.scheme.columns:
            return Unicast()
        if self.columns and len(self.columns) != len(like.scheme.columns):
            raise DagError(
                f"edge {edge} is partitioned by {self.columns!r} like {like.name}, whose partitions depend on"
                f" {like.scheme.columns!r}"
            )
        return replace(self, columns=self.columns or like.scheme.columns, scheme=like.scheme)

    def owners(self, targets: Sequence[str], topology: Topology, destination: Placement) -> npt.NDArray[np.uint16]:
        """An owner that takes part keeps its partitions; the others are assigned round robin or dropped."""
        if self.scheme is None:
            return (np.arange(ROUTING_PARTITIONS) % len(targets)).astype(np.uint16)
        group, orphan = self.scheme.affinity_group(), len(targets)
        ownership = topology.ownership(group)
        position = {member: index for index, member in enumerate(targets)}
        by_member = np.array([position.get(member, orphan) for member in ownership.members], dtype=np.uint16)
        owners = by_member[ownership.owners[0]]
        if self.unmatched is not UnmatchedRows.DROP:
            orphans = np.flatnonzero(owners == orphan)
            owners[orphans] = np.arange(len(orphans)) % len(targets)
        elif isinstance(destination, OnPartitions) and destination.group == group:
            read = list(chain.from_iterable(destination.by_member.values()))
            owners[np.delete(np.arange(len(owners)), read)] = orphan
        return owners


class Broadcast(_Routing, frozen=True, array_like=True, tag="broadcast"):
    """Every batch goes to every consumer. Distributed: on every participant."""

    is_copied = True


class Isolated(_Routing, frozen=True, array_like=True, tag="isolated"):
    """Producer i feeds consumer i modulo their number, so order is kept and chains stay separate. Always local."""

    def problem(self, reach: Reach) -> str | None:
        if isinstance(reach, Local):
            return None
        return "isolated and distributed; an isolated edge is always local: use unicast or partitioned()"


class AllToOne(_Routing, frozen=True, array_like=True, tag="all-to-one"):
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

    @property
    def meeting_columns(self) -> tuple[str, ...]:
        return ()

    def one_of(self, candidates: Sequence[T]) -> T:
        """The candidate that gets everything; at least one is given."""
        return candidates[_partition_of_name(self.key) % len(candidates)]

    def targets(self, members: Sequence[str]) -> Sequence[str]:
        return (self.one_of(members),) if members else ()


class FanOut(_Routing, frozen=True, array_like=True, tag="fan-out"):
    """Each batch goes to one consumer **on each** participant; on a member the consumers take turns.

    Local, it is unicast.
    """

    is_copied = True


Routing = Unicast | Partitioned | Broadcast | Isolated | AllToOne | FanOut


class _Reach(_Kind, frozen=True, array_like=True):
    """Which members the rows may go to."""

    @property
    def named(self) -> tuple[str, ...]:
        """The members that it names, which become participants."""
        return ()

    def targets(self, origin: str, members: Sequence[str]) -> Sequence[str]:
        """The members to which rows that are made on ``origin`` may go, of those that run the destination."""
        return members


class Local(_Reach, frozen=True, array_like=True, tag="local"):
    """Rows stay on the member where they are made."""

    def targets(self, origin: str, members: Sequence[str]) -> Sequence[str]:
        return (origin,) if origin in members else ()


class Distributed(_Reach, frozen=True, array_like=True, tag="distributed"):
    """Rows may go to any participant that runs the destination."""


class DistributedTo(_Reach, frozen=True, array_like=True, tag="to"):
    """All rows go to one member, which becomes a participant."""

    member: str

    @property
    def words(self) -> str:
        return f"distributed to {self.member}"

    @property
    def named(self) -> tuple[str, ...]:
        return (self.member,)

    def targets(self, origin: str, members: Sequence[str]) -> Sequence[str]:
        return self.named if self.member in members else ()


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
        problem = self.routing.problem(self.reach)
        if problem is not None:
            raise DagError(f"edge {self.name} is {problem}")

    @property
    def name(self) -> str:
        """The edge in words, for messages."""
        return f"{self.source!r}[{self.source_ordinal}] -> {self.destination!r}[{self.destination_ordinal}]"

    @property
    def words(self) -> list[str]:
        """Routing, distance and priority in words, the last two only if they are not the default."""
        words = [self.routing.words]
        if self.is_distributed:
            words.append(self.reach.words)
        if self.priority:
            words.append(f"priority {self.priority}")
        return words

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


@lru_cache(maxsize=1024)
def _partition_of_name(name: str) -> int:
    """The routing partition of a constant key."""
    return pmod(hash_values([str.encode], [name]), ROUTING_PARTITIONS)


def _name(vertex: Vertex | str) -> str:
    return vertex if isinstance(vertex, str) else vertex.name
