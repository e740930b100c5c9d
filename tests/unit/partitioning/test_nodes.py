"""The algebra of IEP-24, table by table, and where it is corrected."""

from __future__ import annotations

import pytest

from secateur.errors import ProtocolError
from secateur.partitioning.pruning import (
    All,
    AllOf,
    AnyOf,
    Box,
    Choice,
    Comparison,
    Constraint,
    Everywhere,
    Keys,
    Node,
    Nothing,
    Parameter,
    ParameterComparison,
    Partitions,
    intersect,
    unite,
)
from secateur.protocol import decode, encode, pack


def parameter(index: int) -> Keys:
    return Keys(Box.of({"k": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(index),)),)),))}))


P1, P2, P12, P23, P123 = (
    Partitions((1,)),
    Partitions((2,)),
    Partitions((1, 2)),
    Partitions((2, 3)),
    Partitions((1, 2, 3)),
)
A1, A2 = parameter(1), parameter(2)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(P1, P2, P12, id="(P1) OR (P2) => (P1, P2)"),
        pytest.param(P1, All(), All(), id="(P1) OR (ALL) => (ALL)"),
        pytest.param(P1, Nothing(), P1, id="(P1) OR () => (P1)"),
        pytest.param(P12, P23, P123, id="(P1, P2) OR (P2, P3) => (P1, P2, P3)"),
        pytest.param(A1, A2, AnyOf((A1, A2)), id="(:1) OR (:2) => (:1, :2)"),
        pytest.param(
            AnyOf((P1, A1)), AnyOf((P2, A2)), AnyOf((P12, A1, A2)), id="(P1, :1) OR (P2, :2) => (P1, P2, :1, :2)"
        ),
        pytest.param(A1, A1, A1, id="the same parameter twice"),
        pytest.param(P1, Everywhere(), All(), id="(P1) OR (ANY) is ALL: the text's (P1) loses rows"),
        pytest.param(Nothing(), Nothing(), Nothing(), id="() OR () => ()"),
    ],
)
def test_or(left: Node, right: Node, expected: Node) -> None:
    assert unite([left, right]) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(P1, P2, Nothing(), id="(P1) AND (P2) => ()"),
        pytest.param(P1, All(), P1, id="(P1) AND (ALL) => (P1)"),
        pytest.param(P1, Nothing(), Nothing(), id="(P1) AND () => ()"),
        pytest.param(P12, P23, P2, id="(P1, P2) AND (P2, P3) => (P2)"),
        pytest.param(A1, A2, AllOf((A1, A2)), id="(:1) AND (:2) stays open"),
        pytest.param(P1, Everywhere(), P1, id="(P1) AND (ANY) => (P1)"),
        pytest.param(Everywhere(), All(), Everywhere(), id="(ANY) AND (ALL) => (ANY)"),
        pytest.param(All(), All(), All(), id="(ALL) AND (ALL) => (ALL)"),
        pytest.param(AllOf((P12, A1)), P23, AllOf((P2, A1)), id="nested ANDs are one"),
    ],
)
def test_and(left: Node, right: Node, expected: Node) -> None:
    assert intersect([left, right]) == expected


@pytest.mark.parametrize(
    "node", [All(), Nothing(), Everywhere(), P123, A1, AnyOf((P1, A1)), AllOf((AnyOf((P1, A1)), A2))], ids=repr
)
def test_nodes_survive_the_wire(node: Node) -> None:
    assert decode(encode(node), Node) == node


def test_a_node_of_another_version_is_refused() -> None:
    with pytest.raises(ProtocolError, match="Invalid value 'xor'"):
        decode(pack(["xor", []]), Node)
