"""The plan of a statement as a picture and as a table: what each vertex did on each member; the picture of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from secateur.client.jobs.job import Job, JobStatus
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.quantity import count_text, duration_text
from secateur.drawing.svg import layered_svg
from secateur.errors import Error

_MEMBERS_SHOWN_MAX: Final = 8


def plan_picture(plan: Mapping[str, Any], members: tuple[str, ...]) -> dict[str, Any]:
    """Draw the document of EXPLAIN (FORMAT JSON), with or without ANALYZE.

    Args:
        plan: The document.
        members: All members; those that take no part are shown as skipped.

    Returns:
        ``svg`` is the picture, ``members`` says of each member whether it takes part, and ``work`` what each vertex did
        on each member, as the document does and with the ``vertex``; nothing for a plan that was not executed.
    """
    analyze = plan.get("analyze")
    stages = analyze["stages"] if analyze else ()
    work = tuple({**done, "vertex": _vertex_name(plan, stage["name"])} for stage in stages for done in stage["members"])
    touched = {done["member"] for done in work} or set(plan["pruning"]["required_members"] or ())
    skipped = set(analyze["skipped_members"]) if analyze else set(members) - touched
    everyone = dict.fromkeys([*members, *sorted(touched | skipped)])
    return {
        "svg": layered_svg(
            _diagram(plan, work), "The vertices of the plan and the edges between them; a table follows"
        ),
        "members": [(member, member not in skipped) for member in everyone],
        "work": work,
    }


def _vertex_name(plan: Mapping[str, Any], stage: str) -> str:
    """The vertex of a stage: a statement that runs whole on one member is one vertex, whatever its stage is called."""
    names = [vertex["name"] for vertex in plan["dag"]["vertices"]]
    return names[0] if stage not in names and len(names) == 1 else stage


def _diagram(plan: Mapping[str, Any], work: tuple[Mapping[str, Any], ...]) -> Diagram:
    boxes = []
    for vertex in plan["dag"]["vertices"]:
        done = [one for one in work if one["vertex"] == vertex["name"]]
        lines = [f"{one['member']} {_took(one)}" for one in done] or [
            f"{member} x{vertex['local_parallelism']}" for member in vertex["members"]
        ]
        boxes.append(DiagramNode(vertex["name"], abbreviated(lines, _MEMBERS_SHOWN_MAX), ", ".join(lines)))
    arrows = tuple(
        DiagramEdge(edge["from"], edge["to"], (edge["kind"],), is_bold=edge["distributed"])
        for edge in plan["dag"]["edges"]
    )
    return Diagram(tuple(boxes), arrows)


def _took(done: Mapping[str, Any]) -> str:
    return f"{count_text(done['rows_out'], 'row')}, {duration_text((done['kernel_ms'] + done['busy_ms']) / 1e3)}"


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
