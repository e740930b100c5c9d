"""Resolved plans: what they say in each form, on the wire, and with measurements."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secateur.client.jobs import ResolvedPlan
from secateur.drawing import DiagramEdge, DiagramNode
from secateur.protocol import EdgeTarget, PlacedVertex, ResolvedEdge, ResolvedJob, ResolvedVertex, decode, encode


def edge(source: str, destination: str, **options: Any) -> ResolvedEdge:
    return ResolvedEdge(
        name=f"'{source}'[0] -> '{destination}'[0]",
        source=source,
        destination=destination,
        **{
            "kind": "unicast",
            "words": ("unicast",),
            "distributed": False,
            "priority": 0,
            "origins": ("m1", "m3"),
            "targets": (),
            **options,
        },
    )


PLAN = ResolvedPlan(
    coordinator="m1",
    topology_version=5,
    members=("m1", "m2", "m3", "m4"),
    participants=("m1", "m3"),
    vertices=(
        ResolvedVertex("read", (PlacedVertex("m1", 2, 3, (1, 5, 9)), PlacedVertex("m3", 1, 80, tuple(range(64))))),
        ResolvedVertex("sum", (PlacedVertex("m1", 1), PlacedVertex("m3", 1))),
        ResolvedVertex("log", ()),
        ResolvedVertex("collect", (PlacedVertex("m1", 1),)),
    ),
    edges=(
        edge(
            "read",
            "sum",
            kind="partitioned",
            words=("partitioned(k)", "distributed"),
            distributed=True,
            targets=(EdgeTarget("m1", 1, 136), EdgeTarget("m3", 1, 135)),
        ),
        edge(
            "sum",
            "collect",
            words=("unicast", "distributed", "priority 1"),
            distributed=True,
            priority=1,
            targets=(EdgeTarget("m1", 1),),
        ),
        edge("log", "collect", origins=(), distributed=True),
    ),
)


def metrics_of(
    vertex: str, member: str, *, inputs: tuple[Any, ...] = (), outputs: tuple[Any, ...] = ()
) -> dict[str, Any]:
    return {
        "vertex": vertex,
        "member": member,
        "rows_in": 1200,
        "rows_out": 34,
        "busy_s": 0.002,
        "inputs": inputs,
        "outputs": outputs,
    }


def output(name: str, rows: int) -> dict[str, Any]:
    return {"edge": name, "rows": rows, "bytes": 10 * rows}


MEASURED = PLAN.measured(
    [
        metrics_of("read", "m1", outputs=(output("'read'[0] -> 'sum'[0]", 1000),)),
        metrics_of("read", "m3", outputs=(output("'read'[0] -> 'sum'[0]", 234),)),
        metrics_of(
            "sum",
            "m1",
            inputs=({"edge": "'read'[0] -> 'sum'[0]", "fill": 1.0},),
            outputs=(output("'sum'[0] -> 'collect'[0]", 1),),
        ),
    ]
)


def test_who_is_skipped_and_what_is_sent() -> None:
    assert (PLAN.skipped, PLAN.start_messages) == (("m2", "m4"), 1)


def test_a_coordinator_that_runs_nothing_is_not_skipped() -> None:
    plan = ResolvedPlan("m2", 5, ("m1", "m2", "m3"), ("m1",), (), ())
    assert (plan.skipped, plan.start_messages) == (("m3",), 1)


def test_text() -> None:
    assert str(PLAN).splitlines() == [
        "runs on 2 of 4 members [m1, m3], skipped [m2, m4]",
        "coordinator m1, 1 start message, topology version 5",
        "m1:",
        "  read x2, reads 3 partitions [p1, p5, p9]",
        "  sum x1",
        "  collect x1",
        "m3:",
        (
            "  read x1, reads 80 partitions [p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, 64"
            " more]"
        ),
        "  sum x1",
        "left out, since no row can reach them: log",
        "edges:",
        "  read -> sum: partitioned(k), distributed, from [m1, m3] to [m1, m3], routing partitions dealt [136, 135]",
        "  sum -> collect: unicast, distributed, priority 1, from [m1, m3] to [m1]",
        "  log -> collect: unicast, left out",
    ]


def test_text_with_measurements() -> None:
    lines = str(MEASURED).splitlines()
    assert lines[3:5] == [
        "  read x2, reads 3 partitions [p1, p5, p9], rows 1,200 in and 34 out, busy 2.0 ms",
        "  sum x1, rows 1,200 in and 34 out, busy 2.0 ms",
    ]
    assert lines[-3].endswith("dealt [136, 135], 1,234 rows, 12.3 KB, producers wait")
    assert lines[-2].endswith("to [m1], 1 row, 10 B")


def test_diagram() -> None:
    diagram = PLAN.diagram()
    assert diagram.captions == (
        "runs on 2 of 4 members [m1, m3], skipped [m2, m4]",
        "coordinator m1, 1 start message, topology version 5",
    )
    assert diagram.boxes[0].lines == ("m1 x2 p1 p5 p9", "m3 x1 80 partitions")
    assert diagram.boxes[0].detail.splitlines()[0] == "m1 x2, 3 partitions [p1, p5, p9]"
    assert diagram.boxes[2:] == (
        DiagramNode("log", ("left out",), "no row can reach it", is_faint=True),
        DiagramNode("collect", ("m1 x1",), "m1 x1"),
    )
    assert diagram.arrows[0] == DiagramEdge(
        "read",
        "sum",
        ("partitioned(k)", "distributed"),
        "'read'[0] -> 'sum'[0]\nfrom [m1, m3] to [m1, m3]\nrouting partitions dealt [136, 135]",
        is_bold=True,
    )
    assert [(arrow.is_dashed, arrow.is_faint) for arrow in diagram.arrows] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_diagram_with_measurements() -> None:
    diagram = MEASURED.diagram()
    assert diagram.boxes[0].lines == ("m1 x2 p1 p5 p9", "m3 x1 80 partitions", "busy 4.0 ms")
    assert [arrow.lines[2:] for arrow in diagram.arrows] == [
        ("1,234 rows, 12.3 KB", "producers wait"),
        ("priority 1", "1 row, 10 B"),
        (),
    ]


def test_a_picture_of_many_members_stays_small() -> None:
    vertex = ResolvedVertex("scan", tuple(PlacedVertex(f"m{number}", 1) for number in range(1, 17)))
    (box,) = ResolvedPlan("m1", 1, ("m1",), ("m1",), (vertex,), ()).diagram().boxes
    assert box.lines == ("m1 x1", "m2 x1", "m3 x1", "m4 x1", "m5 x1", "and 11 more")
    assert len(box.detail.splitlines()) == 16


def test_json_is_in_the_words_of_explain() -> None:
    data = json.loads(PLAN.to_json())
    assert {name: data[name] for name in data if name not in ("vertices", "edges")} == {
        "coordinator": "m1",
        "topology_version": 5,
        "required_members": ["m1", "m3"],
        "skipped_members": ["m2", "m4"],
        "members_total": 4,
        "start_messages": 1,
    }
    assert data["vertices"][0]["members"][0] == {
        "member": "m1",
        "processors": 2,
        "partition_count": 3,
        "partitions": [1, 5, 9],
    }
    assert data["vertices"][2] == {"name": "log", "members": []}
    assert data["edges"][1] == {
        "from": "sum",
        "to": "collect",
        "name": "'sum'[0] -> 'collect'[0]",
        "kind": "unicast",
        "words": ["unicast", "distributed", "priority 1"],
        "distributed": True,
        "priority": 1,
        "origins": ["m1", "m3"],
        "targets": [{"member": "m1", "consumers": 1}],
    }


def test_json_with_measurements() -> None:
    data = MEASURED.to_dict()
    assert data["vertices"][1]["members"][0] == {
        "member": "m1",
        "processors": 1,
        "rows_in": 1200,
        "rows_out": 34,
        "busy_s": 0.002,
    }
    assert {name: data["edges"][0][name] for name in ("rows", "bytes", "fill")} == {
        "rows": 1234,
        "bytes": 12340,
        "fill": 1.0,
    }


@pytest.mark.parametrize("plan", [pytest.param(PLAN, id="resolved"), pytest.param(MEASURED, id="measured")])
def test_over_the_wire(plan: ResolvedPlan) -> None:
    assert ResolvedPlan.of(decode(encode(ResolvedJob(plan)), ResolvedJob).plan) == plan


def test_a_vertex_by_name() -> None:
    assert PLAN.vertex("log").placed == ()
    with pytest.raises(KeyError):
        PLAN.vertex("none")
