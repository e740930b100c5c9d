"""Meta-suppliers and suppliers: how processors get to the members.

The life of a vertex, in order::

    at the client          MetaSupplier.query(params), needs(...), so that one who takes part anyway coordinates
    at the coordinator     MetaSupplier.query(params), init(context) -> placement() -> get(members)
    on each of its members Supplier.init(context) -> get(count) -> Processor.init(...) each
    at the end             Processor.close(), Supplier.close(error), and at the coordinator MetaSupplier.close(error)

``close`` is called on every object whose ``init`` was begun, also when that init failed.

Each run of a DAG works on a **shallow copy** of its meta-suppliers: what ``init`` assigns to ``self`` belongs to that
run. So nothing that depends on parameters, owners or the topology is ever kept with a cached plan.

Source: Hazelcast Jet, ``ProcessorMetaSupplier`` and ``ProcessorSupplier``, including ``initIsCooperative`` and
``closeIsCooperative`` of Jet 5.4; :func:`force_total_parallelism_one` is ``forceTotalParallelismOne`` there, and
    :func:`lazy_total_parallelism_one` is ``lazyForceTotalParallelismOne`` of its job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from secateur.dag.placement import Anywhere, OnMembers, OnPartitions, Placement, Unrestricted
from secateur.dag.processor import Params, Processor, bind_value
from secateur.errors import DagError, InternalError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.job_description import JobConfig, JobRequirements, SourceScan

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class MetaContext:
    """The information given to a meta-supplier: the same for all vertices of a run, except ``vertex``.

    Attributes:
        job_id: Unique in the cluster.
        vertex: Name of the vertex.
        coordinator: Id of the member that coordinates the run.
        config: The arguments of the job.
        params: The parameters of the job.
        topology: Members and owners; the whole run uses this one version.
        table: Finds a table's description; raises ``UnknownTableError``.
        planned: The plan of the SELECT that :meth:`ProcessorMetaSupplier.query` returned, a
            :class:`~secateur.engine.runtime.services.PlannedQuery`; None if it returned none.
    """

    job_id: str
    vertex: str
    coordinator: str
    config: JobConfig
    params: Params
    topology: Topology
    table: Callable[[str], TableDef]
    planned: Any = None

    def owners(self, group: str, partitions: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """The partitions by the member that owns them.

        Raises:
            TopologyChangedError: The topology has no such affinity group: its table came or went in the meantime.
            PartitionLostError: A partition had its only copy on a member that has left.
        """
        if group not in self.topology.owners:
            raise TopologyChangedError(
                f"vertex {self.vertex!r}: topology version {self.topology.version} has no owners for the affinity group"
                f" {group!r}; try again"
            )
        owners = self.topology.primaries(group, partitions)
        self.topology.check_live(owners)
        return {member: tuple(ids) for member, ids in owners.items()}


@dataclass(frozen=True, slots=True)
class SupplierContext:
    """The information given to a supplier about the member that it serves.

    Attributes:
        job_id: Unique in the cluster.
        vertex: Name of the vertex.
        member: Id of this member.
        local_parallelism: Processors that ``get`` will be asked for.
        total_parallelism: Processors of the vertex in the whole job.
        params: The parameters of the job.
        services: The services of the member for its processors, by type; read with :meth:`service`.
    """

    job_id: str
    vertex: str
    member: str
    local_parallelism: int
    total_parallelism: int
    params: Params
    services: Mapping[type, Any] = field(default_factory=dict)

    def service(self, kind: type[S]) -> S:
        """The member's service of a type, such as its store.

        Raises:
            InternalError: The member has none.
        """
        try:
            found: S = self.services[kind]
        except KeyError:
            raise InternalError(
                f"vertex {self.vertex!r} on member {self.member}: the member offers no {kind.__name__}"
            ) from None
        return found


class ProcessorSupplier:
    """Makes the processors of one vertex on one member.

    It is sent to the member, so its state must be picklable or, with a registered kind, plain data.

    Attributes:
        init_is_cooperative: True promises that ``init``, ``get`` and the processors' ``init`` neither wait nor compute
            for longer than about a millisecond; False runs the whole start of the job on that member in a thread.
        close_is_cooperative: The same promise for ``close``.
    """

    init_is_cooperative: bool = False
    close_is_cooperative: bool = False

    def reads(self) -> Iterable[tuple[int, int]]:
        """The partitions, by table and number, of which ``init`` has taken the rows as they are then.

        The processors run when the changes in these rows are acknowledged.
        """
        return ()

    def init(self, context: SupplierContext) -> None:
        """Prepare what the processors of this member share: open a connection, load a model."""

    def get(self, count: int) -> Sequence[Processor]:
        """Make exactly ``count`` new processors."""
        raise NotImplementedError(f"{type(self).__name__} has no get()")

    def close(self, error: BaseException | None) -> None:
        """Release what ``init`` acquired. ``error`` is why the job ended, None for success. Must not raise."""

    def in_two_stages(self, columns: Set[str]) -> tuple[ProcessorSupplier, ProcessorSupplier] | None:
        """Split into two stages as :meth:`ProcessorMetaSupplier.in_two_stages` does, but for suppliers."""
        return None


class ProcessorMetaSupplier:
    """Decides at the coordinator where a vertex runs, and makes a supplier for each of those members.

    Attributes:
        preferred_local_parallelism: Processors on each member when the vertex does not say; None: as many as the member
            has cores for it.
        works_without_input: True when the vertex has something to do or say even if no row can reach it, such as a
            global count. Otherwise it is dropped where nothing can arrive.
        init_is_cooperative: As for :class:`ProcessorSupplier`, for ``init``, ``placement`` and ``get``.
        close_is_cooperative: The same promise for ``close``.
    """

    preferred_local_parallelism: int | None = None
    works_without_input: bool = False
    init_is_cooperative: bool = False
    close_is_cooperative: bool = False

    def query(self, params: Params) -> SourceQuery | None:
        """Return the SELECT whose plan ``init`` is to find in its context, or None.

        It is planned when the job starts, each time anew if tables have changed. Where the job is submitted, the
        partitions of its scans are the requirements of the vertex, in place of :meth:`needs`.

        Args:
            params: The parameters of the job.

        Raises:
            ParameterError: A parameter is missing.
        """
        return None

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements | None:
        """Return the partitions and members that it requires, as far as they are known before there is a topology.

        The answer is what :meth:`placement` will ask for, or less.

        It is called where the job is submitted, on an object that was not initialised. The job is then coordinated by a
        member that takes part anyway; otherwise a member may have to take part only to coordinate.

        Args:
            vertex: Name of the vertex, for messages.
            params: The parameters of the job.
            table: Finds a table's description; raises ``UnknownTableError``.

        Returns:
            ``JobRequirements()`` for a source that adds no member to the job; None if it is not known, which for a
            source
            means that it may need every member.
        """
        return None

    def init(self, context: MetaContext) -> None:
        """Bind to parameters and owners: evaluate partition expressions here, not in the constructor."""

    def placement(self) -> Placement:
        """Return where the vertex has to run. Called after ``init``."""
        return Unrestricted()

    def scan(self) -> SourceScan | None:
        """Return what a source reads, for those who look at the plan of a job; None for anything else.

        Called after ``init``.
        """
        return None

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        """A supplier for each of ``members``, which are those where the vertex will run.

        Called once, after the participants are known.
        """
        raise NotImplementedError(f"{type(self).__name__} has no get()")

    def close(self, error: BaseException | None) -> None:
        """Called when the job has ended everywhere; ``error`` is the reason, None for success. Must not raise."""

    def in_two_stages(self, columns: Set[str]) -> tuple[ProcessorMetaSupplier, ProcessorMetaSupplier] | None:
        """Split the vertex into partial and final aggregation, or return None.

        The first vertex makes partial results of rows where they are; the second makes the same answer from them.

        It is called before a run is planned, on an object that was not initialised, if all rows reach the vertex over
        edges that bring together equal values of ``columns``: the first stage is then put before those edges.

        Args:
            columns: The columns by which rows are routed; partial results must have them.

        Returns:
            None if the vertex is not split.
        """
        return None


class FactorySupplier(ProcessorSupplier):
    """Makes processors by calling a function without arguments.

    Args:
        factory: The function.
        is_cooperative: Whether it, and ``init`` of the processors, neither wait nor compute for long.
    """

    def __init__(self, factory: Callable[[], Processor], *, is_cooperative: bool = False) -> None:
        self._factory = factory
        self.init_is_cooperative = self.close_is_cooperative = is_cooperative

    def get(self, count: int) -> Sequence[Processor]:
        return [self._factory() for _ in range(count)]


class ReplicatedMetaSupplier(ProcessorMetaSupplier):
    """Gives every member its own shallow copy of one supplier. Travels as data if the supplier does.

    Args:
        supplier: Travels to the members.
        preferred_local_parallelism: As the attribute.
        works_without_input: As the attribute.
        one_in_job: Whether one processor in the whole job is wanted, on a member that takes part anyway.
    """

    def __init__(
        self,
        supplier: ProcessorSupplier,
        *,
        preferred_local_parallelism: int | None = None,
        works_without_input: bool = False,
        one_in_job: bool = False,
    ) -> None:
        self.supplier = supplier
        self.one_in_job = one_in_job
        self.preferred_local_parallelism = preferred_local_parallelism
        self.works_without_input = works_without_input
        self.init_is_cooperative = self.close_is_cooperative = True

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements | None:
        return JobRequirements() if self.one_in_job else None

    def placement(self) -> Placement:
        return Anywhere() if self.one_in_job else Unrestricted()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: copy(self.supplier) for member in members}

    def in_two_stages(self, columns: Set[str]) -> tuple[ProcessorMetaSupplier, ProcessorMetaSupplier] | None:
        stages = self.supplier.in_two_stages(columns)
        if stages is None:
            return None
        second = copy(self)
        second.supplier = stages[1]
        return ReplicatedMetaSupplier(stages[0], preferred_local_parallelism=self.preferred_local_parallelism), second


def meta_supplier_of(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor],
) -> ProcessorMetaSupplier:
    """Convert anything that makes processors to a meta-supplier.

    Args:
        source: A meta-supplier, which is returned as it is; a supplier, of which every member gets a copy; or a
            function (or class) without required arguments that returns a new processor.

    Raises:
        DagError: None of these.
    """
    if isinstance(source, ProcessorMetaSupplier):
        return source
    if isinstance(source, ProcessorSupplier):
        return ReplicatedMetaSupplier(source)
    if callable(source):
        return ReplicatedMetaSupplier(FactorySupplier(source))
    raise DagError(
        f"{source!r} makes no processors: pass a ProcessorMetaSupplier, a ProcessorSupplier, or a function that returns"
        " a new Processor"
    )


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A SELECT of a source.

    Attributes:
        sql: Its text.
        params: The values of its placeholders, in order or by name, bound to the parameters of the job.
        pruning: Whether partitions and rows that its condition excludes are left out before it is tested.
    """

    sql: str
    params: Sequence[Any] | Mapping[str, Any] = ()
    pruning: bool = True


NeedsOfQuery: TypeAlias = Callable[[SourceQuery], JobRequirements]
"""Finds out what a SELECT requires, where a job is submitted."""


TableFinder = Callable[[str], TableDef]


def force_total_parallelism_one(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor], member: str
) -> ProcessorMetaSupplier:
    """A vertex with one processor in the whole job, on ``member``, which becomes a participant."""
    return _TotalParallelismOne(
        meta_supplier_of(source),
        lambda context: member,
        lambda params, find: JobRequirements(members=frozenset({member})),
    )


def lazy_total_parallelism_one(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor], table: str, key: Mapping[str, Any]
) -> ProcessorMetaSupplier:
    """Run one processor in the whole job, on the member that owns the partition of ``key`` when the job starts.

    The member is determined at each start and never kept, so a DAG may be used again with other parameters and after
    partitions have moved.

    Args:
        source: The source of the processor.
        table: The table whose partition decides.
        key: A value, or a :class:`~secateur.dag.processor.Param`, for each partitioning column of the table.
    """
    bound_key = dict(key)

    def partition_in(definition: TableDef, params: Params) -> int:
        return definition.scheme.partition_of({name: bind_value(value, params) for name, value in bound_key.items()})

    def owner(context: MetaContext) -> str:
        definition = context.table(table)
        (member,) = context.owners(definition.scheme.affinity_group(), [partition_in(definition, context.params)])
        return member

    def needs(params: Params, find: TableFinder) -> JobRequirements:
        return JobRequirements({table: frozenset({partition_in(find(table), params)})})

    return _TotalParallelismOne(meta_supplier_of(source), owner, needs)


def total_parallelism_one_at_owner(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor], group: str, partition: int
) -> ProcessorMetaSupplier:
    """Run one processor in the whole job, on the member that owns a partition when the job starts.

    :func:`lazy_total_parallelism_one` for a partition that is known already, as it is to the stages of a SELECT.
    """

    def owner(context: MetaContext) -> str:
        (member,) = context.owners(group, [partition])
        return member

    return _TotalParallelismOne(
        meta_supplier_of(source), owner, lambda params, find: JobRequirements({group: frozenset({partition})})
    )


class _TotalParallelismOne(ProcessorMetaSupplier):
    preferred_local_parallelism = 1

    def __init__(
        self,
        inner: ProcessorMetaSupplier,
        choose: Callable[[MetaContext], str],
        needs: Callable[[Params, TableFinder], JobRequirements],
    ) -> None:
        self._inner = inner
        self._choose = choose
        self._needs = needs
        self._running: ProcessorMetaSupplier | None = None
        self._member = ""
        self.works_without_input = inner.works_without_input
        self.init_is_cooperative = inner.init_is_cooperative
        self.close_is_cooperative = inner.close_is_cooperative

    def needs(self, vertex: str, params: Params, table: TableFinder) -> JobRequirements:
        return self._needs(params, table)

    def query(self, params: Params) -> SourceQuery | None:
        return self._inner.query(params)

    def init(self, context: MetaContext) -> None:
        self._member = self._choose(context)
        if self._member not in {member.id for member in context.topology.members}:
            known = ", ".join(member.id for member in context.topology.members)
            raise DagError(
                f"vertex {context.vertex!r} is to run on member {self._member!r}, which is not in the cluster; it has"
                f" {known}"
            )
        self._running = copy(self._inner)
        self._running.init(context)

    def placement(self) -> Placement:
        inner = (self._running or self._inner).placement()
        if isinstance(inner, OnPartitions) and [len(ids) for ids in inner.by_member.values()] == [1]:
            (reader,) = inner.by_member
            if reader == self._member:
                return inner  # it reads that one partition: the job's requirements are checked, edges follow it
        return OnMembers((self._member,), parallelism_max=1)

    def scan(self) -> SourceScan | None:
        return (self._running or self._inner).scan()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return (self._running or self._inner).get(members)

    def close(self, error: BaseException | None) -> None:
        if self._running is not None:
            self._running.close(error)
