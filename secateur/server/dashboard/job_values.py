"""What the pages of jobs say beside the system table: how long a job took, and which vertex has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from secateur.client.jobs.job import Job
from secateur.client.jobs.job_status import JobStatus
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.drawing.svg import layered_svg
from secateur.errors import Error


def with_times(rows: Sequence[Mapping[str, Any]], now: datetime | None = None) -> list[dict[str, Any]]:
    """The jobs, each with ``elapsed_ms`` from its submission to its end, or until now.

    Args:
        rows: Those of ``secateur.jobs``.
        now: The time in UTC, without a zone as in the rows; by default that of this moment.
    """
    moment = datetime.now(UTC).replace(tzinfo=None) if now is None else now
    return [{**row, "elapsed_ms": 1e3 * ((row["ended"] or moment) - row["submitted"]).total_seconds()} for row in rows]


def failed_vertex(job: Job, status: str) -> str | None:
    """The vertex in which a job has failed; None for another job, and for one that has failed elsewhere."""
    if status != JobStatus.FAILED:
        return None
    try:
        job.results(timeout_s=0.0)
    except Error as error:
        vertex: str | None = error.details.get("vertex")
        return vertex
    return None


def job_svg(plan: ResolvedPlan, failed: str | None) -> str:
    """The picture of a job; the box of the vertex that has failed has the class ``failed``."""
    diagram = plan.diagram()
    boxes = tuple(replace(box, is_failed=box.name == failed) for box in diagram.boxes)
    return layered_svg(replace(diagram, boxes=boxes), "The vertices of the job and the edges between them")
