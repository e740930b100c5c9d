"""Layers by longest path, and orders with few crossings."""

from __future__ import annotations

from itertools import pairwise

import pytest

from secateur.drawing import Arrow, Box, Diagram
from secateur.drawing.layers import Layered, layered


def diagram(*edges: str, alone: str = "") -> Diagram:
    """A diagram of one-letter boxes, in alphabetical order: ``"ab"`` is an arrow from a to b."""
    names = sorted({*"".join(edges), *alone})
    return Diagram(tuple(map(Box, names)), tuple(Arrow(source, destination) for source, destination in edges))


def rows(result: Layered, shown: Diagram) -> list[str]:
    """The layers of boxes as words; a dot is a line that passes."""
    return ["".join("." if cell.box is None else shown.boxes[cell.box].name for cell in layer) for layer in result.layers[::2]]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        pytest.param(["ab", "bc"], ["a", "b", "c"], id="chain"),
        pytest.param(["ab", "ac", "bd", "cd"], ["a", "bc", "d"], id="diamond"),
        pytest.param(["ab", "bc", "ac"], ["a", "b.", "c"], id="a-line-over-a-layer"),
        pytest.param(["ac", "cd", "bd"], ["a", "bc", "d"], id="a-source-stands-above-what-it-feeds"),
        pytest.param(["ab", "be", "cd", "de", "ef"], ["ac", "bd", "e", "f"], id="two-chains-meet"),
        pytest.param(["af", "bc", "cd", "de", "ef"], ["b", "c", "d", "ae", "f"], id="a-short-chain-moves-down-whole"),
        pytest.param(["ad", "bc"], ["ab", "dc"], id="no-crossing"),
    ],
)
def test_layers(edges: list[str], expected: list[str]) -> None:
    shown = diagram(*edges)
    assert rows(layered(shown), shown) == expected


def test_two_arrows_between_two_boxes_stay_apart() -> None:
    result = layered(diagram("ab", "ab"))
    assert [len(layer) for layer in result.layers] == [1, 2, 1]


def test_boxes_without_arrows_share_a_layer() -> None:
    shown = diagram(alone="abc")
    assert rows(layered(shown), shown) == ["abc"]


def test_nothing_at_all() -> None:
    assert layered(Diagram((), ())) == Layered((), ())


def test_every_path_leads_through_neighbouring_layers() -> None:
    result = layered(diagram("ab", "bc", "cd", "ad", "bd"))
    layer_of = {cell: number for number, layer in enumerate(result.layers) for cell in layer}
    for path in result.paths:
        assert all(layer_of[lower] == layer_of[upper] + 1 for upper, lower in pairwise(path))
        assert [cell.has_text for cell in path[1:-1]] == [True, *[False] * (len(path) - 3)]


def test_crossings_are_taken_out() -> None:
    """Six lines that all cross at first."""
    result = layered(diagram("ah", "bg", "cf", "de"))
    order = {cell: cell.order for layer in result.layers for cell in layer}
    assert all(order[path[0]] == order[path[-1]] for path in result.paths)
