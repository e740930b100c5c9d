"""Resolves where a job would run, without running it."""

from __future__ import annotations

from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.client.jobs.submittable import Params, Submittable, submission
from secateur.client.session import Session
from secateur.partitioning.topology.required_owners import coordinators
from secateur.protocol.job_config import JobConfig
from secateur.protocol.jobs import ResolveJob


def plan_job(session: Session, dag: Submittable, config: JobConfig | None, params: Params) -> ResolvedPlan:
    """Have one of the members that may coordinate a job resolve it.

    One round trip to that member, and none to any other.

    Raises:
        Error: Why the job could not start.
    """
    job = submission(session, dag, config, params)
    members = session.when_known(
        lambda: coordinators(
            job.needs, session.topology, lambda table: session.known_table(table).scheme.affinity_group()
        )
    )
    answer = session.ask_member(members[0], ResolveJob(job.config, job.params), job.dag)
    return ResolvedPlan.of(answer.message.plan)
