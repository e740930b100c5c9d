"""Edges: the fluent form makes the right value, and what cannot be is refused at the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from secateur.dag import Edge, EdgeConfig, between, from_
from secateur.dag.edge import (
    AllToOne,
    Broadcast,
    Distributed,
    DistributedTo,
    FanOut,
    Isolated,
    Local,
    Partitioned,
    Unicast,
)
from secateur.errors import DagError
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.types import parse_type

SCHEME = build_scheme(
    hashes=[HashComponent(("a", "b"), 4)],
    types={"a": parse_type("BIGINT"), "b": parse_type("VARCHAR")},
    primary_key=("a", "b"),
    table="t",
)


def test_the_default_is_a_local_unicast_edge_of_priority_0() -> None:
    assert between("a", "b") == Edge("a", "b", 0, 0, Unicast(), Local(), 0, EdgeConfig())


def test_from_to_sets_ordinals() -> None:
    edge = from_("a", 2).to("b", 3)
    assert (edge.source, edge.source_ordinal, edge.destination, edge.destination_ordinal) == ("a", 2, "b", 3)
    assert edge.name == "'a'[2] -> 'b'[3]"


@pytest.mark.parametrize(
    ("build", "attribute", "value"),
    [
        pytest.param(lambda e: e.partitioned("k", "n"), "routing", Partitioned(("k", "n")), id="partitioned"),
        pytest.param(
            lambda e: e.partitioned("x", "y", scheme=SCHEME),
            "routing",
            Partitioned(("x", "y"), SCHEME),
            id="partitioned like a table",
        ),
        pytest.param(
            lambda e: e.partitioned("x", "x", scheme=SCHEME),
            "routing",
            Partitioned(("x", "x"), SCHEME),
            id="one column for two of a table",
        ),
        pytest.param(
            lambda e: e.partitioned(table="t"),
            "routing",
            Partitioned((), None, "t"),
            id="partitioned like a table by name",
        ),
        pytest.param(lambda e: e.broadcast(), "routing", Broadcast(), id="broadcast"),
        pytest.param(lambda e: e.isolated(), "routing", Isolated(), id="isolated"),
        pytest.param(lambda e: e.all_to_one("x"), "routing", AllToOne("x"), id="all to one"),
        pytest.param(lambda e: e.fan_out(), "routing", FanOut(), id="fan out"),
        pytest.param(lambda e: e.broadcast().unicast(), "routing", Unicast(), id="unicast"),
        pytest.param(lambda e: e.distributed(), "reach", Distributed(), id="distributed"),
        pytest.param(lambda e: e.distribute_to("m2"), "reach", DistributedTo("m2"), id="distributed to"),
        pytest.param(lambda e: e.with_priority(-1), "priority", -1, id="priority"),
        pytest.param(
            lambda e: e.with_config(EdgeConfig(queue_batches_max=1)),
            "config",
            EdgeConfig(queue_batches_max=1),
            id="config",
        ),
    ],
)
def test_each_method_changes_one_attribute(build: Callable[[Edge], Edge], attribute: str, value: object) -> None:
    plain = between("a", "b")
    changed = build(plain)
    assert getattr(changed, attribute) == value
    others = [name for name in ("source", "destination", "routing", "reach", "priority", "config") if name != attribute]
    assert [getattr(changed, name) for name in others] == [getattr(plain, name) for name in others]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        pytest.param(lambda: between("a", "a"), "starts and ends at the same vertex", id="self loop"),
        pytest.param(lambda: from_("a", -1).to("b"), "negative ordinal", id="negative ordinal"),
        pytest.param(
            lambda: between("a", "b").isolated().distributed(),
            "isolated and distributed",
            id="isolated then distributed",
        ),
        pytest.param(
            lambda: between("a", "b").distribute_to("m1").isolated(),
            "isolated and distributed",
            id="distributed then isolated",
        ),
        pytest.param(lambda: between("a", "b").partitioned(), "at least one column", id="no key"),
        pytest.param(lambda: between("a", "b").partitioned("k", "k"), "each once", id="key twice"),
        pytest.param(
            lambda: between("a", "b").partitioned("k", scheme=SCHEME), "the scheme hashes", id="key unlike the scheme"
        ),
        pytest.param(
            lambda: between("a", "b").partitioned("x", "y", scheme=SCHEME, table="t"),
            "give one of them",
            id="scheme and table",
        ),
        pytest.param(lambda: EdgeConfig(window_bytes_max=0), "window_bytes_max is 0", id="no window"),
    ],
)
def test_what_cannot_be_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(DagError, match=message):
        build()


@pytest.mark.parametrize(
    ("edge", "targets"),
    [
        pytest.param(between("a", "b"), {"m1": (), "m2": ("m2",), "m3": ("m3",)}, id="local"),
        pytest.param(between("a", "b").distributed(), dict.fromkeys(["m1", "m2"], ("m2", "m3")), id="distributed"),
        pytest.param(between("a", "b").distribute_to("m3"), dict.fromkeys(["m1", "m3"], ("m3",)), id="to a member"),
        pytest.param(between("a", "b").distribute_to("m1"), {"m1": (), "m2": ()}, id="to a member without a consumer"),
        pytest.param(between("a", "b").all_to_one("x"), {"m1": (), "m2": ("m2",), "m3": ("m3",)}, id="to one of each"),
        pytest.param(
            between("a", "b").all_to_one("x").distributed(), dict.fromkeys(["m1", "m2"], ("m2",)), id="to one"
        ),
    ],
)
def test_the_targets_of_the_rows_of_a_member(edge: Edge, targets: dict[str, tuple[str, ...]]) -> None:
    def found(origin: str, members: Sequence[str]) -> tuple[str, ...]:
        return tuple(edge.routing.targets(edge.reach.targets(origin, members)))

    assert {origin: found(origin, ["m2", "m3"]) for origin in targets} == targets
    assert not any(found(origin, []) for origin in targets)


@pytest.mark.parametrize(
    ("edge", "columns"),
    [
        pytest.param(between("a", "b").partitioned("k", "n"), ("k", "n"), id="by a key"),
        pytest.param(between("a", "b").all_to_one("x"), (), id="all rows"),
        pytest.param(between("a", "b").partitioned("x", "y", scheme=SCHEME), None, id="by a scheme"),
        pytest.param(between("a", "b").partitioned("k", table="t"), None, id="like a table"),
        pytest.param(between("a", "b").broadcast(), None, id="by none"),
    ],
)
def test_the_columns_by_which_rows_meet(edge: Edge, columns: tuple[str, ...] | None) -> None:
    assert edge.routing.meeting_columns == columns
