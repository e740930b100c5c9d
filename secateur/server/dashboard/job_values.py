"""The page of a job says more than the system table: the vertex that has failed."""

from __future__ import annotations

from dataclasses import replace

from secateur.client.jobs.job import Job
from secateur.client.jobs.job_status import JobStatus
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.drawing.svg import layered_svg
from secateur.errors import Error


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
