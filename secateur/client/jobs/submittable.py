"""The client's description of a job that can be submitted, and its submission."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from secateur.client.dbapi.parameters import plain_values, values_of
from secateur.client.execution.routing import partitions_of
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.client.session import Prepared, Session
from secateur.errors import DagError, Error, ParameterError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.hello import Pruning
from secateur.protocol.job_description import JobConfig, JobRequirements, coordinators
from secateur.protocol.jobs import ResolveJob
from secateur.protocol.statements import SelectStatement

_PARTITIONS_NAMED_MAX: Final = 512
"""Enough to find a member that takes part."""

Params: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Submittable(Protocol):
    """A DAG, as far as a client has to know it: one that is being built, or a complete one."""

    def freeze(self) -> FrozenSubmittable:
        """The complete and valid DAG."""


class SourceSelect(Protocol):
    """A SELECT that a source reads."""

    @property
    def sql(self) -> str:
        """Its text."""

    @property
    def params(self) -> Params:
        """The values of its placeholders."""


class FrozenSubmittable(Protocol):
    """A complete and valid DAG."""

    def needs(
        self, params: Params, table: Callable[[str], TableDef], needs_of: Callable[[SourceSelect], JobRequirements]
    ) -> JobRequirements:
        """The partitions and members that it needs, as far as its vertices say so, or the SELECTs of its sources."""

    def encoded(self) -> bytes:
        """The DAG as it travels; functions in it by cloudpickle."""


class Submission(NamedTuple):
    """The contents of a request that submits a job: ``dag`` is its payload.

    The members that own the partitions of ``needs``, or are named there, may coordinate it.
    """

    job_id: str
    config: JobConfig
    params: list[Any] | dict[str, Any]
    dag: bytes
    needs: JobRequirements


def submission(session: Session, dag: Submittable, config: JobConfig | None, params: Params) -> Submission:
    """A job ready to be sent, with a new id.

    Costs a round trip for each named table that this session has no definition of.

    Raises:
        InterfaceError: The connection is closed.
        ParameterError: It is no DAG, or no config; or it lacks a parameter.
        DagError: The DAG is not valid; or the keys of a source lack a partitioning column.
        SerializationError: A function in it cannot be pickled.
        UnknownTableError: A table that it reads by keys or partitions does not exist.
    """
    session.check_open()
    if not hasattr(dag, "freeze"):
        raise ParameterError(
            f"a {type(dag).__name__} is not a job: submit a secateur.DAG, or a secateur.Pipeline that ends"
            " with write_to(...)"
        )
    if config is not None and not isinstance(config, JobConfig):
        raise ParameterError(
            f"a {type(config).__name__} is not a job configuration: pass a secateur.JobConfig, or None for its defaults"
        )
    frozen = dag.freeze()
    values = plain_values(params)
    chosen = JobConfig() if config is None else config
    if session.pruning is Pruning.OFF:
        chosen = replace(chosen, pruning=False)
    return Submission(uuid.uuid4().hex, chosen, values, frozen.encoded(), _needs(session, frozen, chosen, values))


def _needs(session: Session, dag: FrozenSubmittable, config: JobConfig, params: Params) -> JobRequirements:
    if config.required_partitions is not None:
        return JobRequirements(config.required_partitions)
    try:
        return session.when_known(
            lambda: dag.needs(params, session.known_table, lambda query: _needs_of(session, query, session.prepare))
        )
    except Error:
        session.forget_tables()  # an old description may be to blame, or an old plan
        anew = partial(_needs_of, session, prepare=lambda *asked: (session.prepare_anew(*asked), False))
        return session.when_known(lambda: dag.needs(params, session.known_table, anew))


def _needs_of(session: Session, query: SourceSelect, prepare: Callable[..., tuple[Prepared, bool]]) -> JobRequirements:
    """The partitions that a SELECT reads, as far as this client can tell."""
    params = plain_values(query.params)
    prepared, _ = prepare(query.sql, params)
    if not isinstance(prepared, SelectStatement):
        raise DagError(f"a source reads the rows of a SELECT, not of {query.sql!r}")
    values, topology = values_of(prepared, params, time.time()), session.topology
    needs = JobRequirements()
    for scan in prepared.scans:
        if not scan.replicated:
            topology.ownership(scan.group)  # it is not there if the plan is older than the ranges of the table
            partitions = session.when_known(partial(partitions_of, scan, values))
            needs |= JobRequirements({scan.group: frozenset(partitions[:_PARTITIONS_NAMED_MAX])})
    return needs


def coordinators_of(session: Session, job: Submission) -> Sequence[str]:
    """The members that may coordinate a job, by what this session knows of its tables."""
    return session.when_known(
        lambda: coordinators(
            job.needs, session.topology, lambda table: session.known_table(table).scheme.affinity_group()
        )
    )


def plan_job(session: Session, dag: Submittable, config: JobConfig | None, params: Params) -> ResolvedPlan:
    """Have one of the members that may coordinate a job resolve it.

    One round trip to that member, and none to any other.

    Raises:
        Error: Why the job could not start.
    """
    job = submission(session, dag, config, params)
    answer = session.ask_member(coordinators_of(session, job)[0], ResolveJob(job.config, job.params), job.dag)
    return ResolvedPlan.of(answer.message.plan)
