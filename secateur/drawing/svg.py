"""A diagram as SVG, drawn here: for pages that cannot rely on Graphviz being installed.

Source: Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981): layers
by the longest path, long edges as chains of points, and the order in a layer by the mean of the neighbours above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode

_CHAR: Final = 6.7
"""The width of a letter of a monospaced font of 11 pixels."""
_LINE: Final = 15
_PAD: Final = 10
_GAP: Final = 28
_LAYER_GAP: Final = 30
_POINT: Final = 24
"""The width that is kept free for an edge that passes a layer."""
_LETTERS_MAX: Final = 34


@dataclass(slots=True)
class _Spot:
    """A box in its layer, or a point of an edge that passes it (``box`` is None then)."""

    box: DiagramNode | None
    width: float
    height: float
    layer: int
    order: float = 0.0
    x: float = 0.0
    y: float = 0.0


def layered_svg(diagram: Diagram, title: str) -> str:
    """The diagram from top to bottom as an ``<svg>`` element for an HTML page, without its captions.

    It has no colours: the page's style sheet gives them to the classes ``dag-box``, ``dag-name``, ``dag-line``,
    ``dag-edge``, ``dag-head`` and ``dag-label``, together with ``faint``, ``failed``, ``bold`` and ``dashed``. Takes
    about a millisecond for a hundred boxes.

    The title says what the picture shows, for screen readers.
    """
    spots, chains, layers = _layered(diagram)
    _place(diagram, layers, spots, chains)
    boxes_right = max((spot.x + spot.width / 2 for layer in layers for spot in layer), default=0.0)
    labels_right = max(
        (_label_right(arrow, chain) for arrow, chain in zip(diagram.arrows, chains, strict=True)), default=0.0
    )
    width = max(boxes_right, labels_right) + 1
    height = max((spot.y + spot.height for layer in layers for spot in layer), default=0.0) + 1
    head = (
        f'<svg class="dag" role="img" aria-label="{escape(title)}" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    parts = [head]
    for arrow, chain in zip(diagram.arrows, chains, strict=True):
        parts += _arrow(arrow, chain)
    for box in diagram.boxes:
        parts += _box(box, spots[box.name])
    return "".join([*parts, "</svg>"])


def _layered(diagram: Diagram) -> tuple[dict[str, _Spot], list[list[_Spot]], list[list[_Spot]]]:
    """The spot of each box, those of each arrow from end to end, and all of them by layer."""
    layer_of: dict[str, int] = {}
    for box in diagram.boxes:
        above = [layer_of[arrow.source] for arrow in diagram.arrows if arrow.destination == box.name]
        layer_of[box.name] = max(above, default=-1) + 1
    spots = {box.name: _spot(box, layer_of[box.name]) for box in diagram.boxes}
    layers: list[list[_Spot]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for spot in spots.values():
        layers[spot.layer].append(spot)
    chains: list[list[_Spot]] = []
    for arrow in diagram.arrows:
        source, destination = spots[arrow.source], spots[arrow.destination]
        passed = [_Spot(None, _POINT, 0, layer) for layer in range(source.layer + 1, destination.layer)]
        for point in passed:
            layers[point.layer].append(point)
        chains.append([source, *passed, destination])
    return spots, chains, layers


def _spot(box: DiagramNode, layer: int) -> _Spot:
    letters = max(len(_shortened(text)) for text in (box.name, *box.lines))
    return _Spot(box, letters * _CHAR + 2 * _PAD, (1 + len(box.lines)) * _LINE + _PAD, layer)


def _place(
    diagram: Diagram, layers: Sequence[list[_Spot]], spots: dict[str, _Spot], chains: Sequence[list[_Spot]]
) -> None:
    above: dict[int, list[_Spot]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            above.setdefault(id(lower), []).append(upper)
    label_lines = [0] * (len(layers) + 1)
    for arrow in diagram.arrows:
        below = spots[arrow.destination].layer
        label_lines[below] = max(label_lines[below], len(arrow.lines))
    widest = max((_width(layer) for layer in layers), default=0.0)
    y = 0.0
    for number, layer in enumerate(layers):
        for spot in layer:
            uppers = above.get(id(spot), ())
            spot.order = sum(upper.x for upper in uppers) / len(uppers) if uppers else spot.order
        layer.sort(key=lambda spot: spot.order)
        y += (_LAYER_GAP + label_lines[number] * _LINE) if number else 1
        x = (widest - _width(layer)) / 2 + 1
        for spot in layer:
            spot.x, spot.y = x + spot.width / 2, y
            x += spot.width + _GAP
        y += max((spot.height for spot in layer), default=0.0)


def _width(layer: Sequence[_Spot]) -> float:
    return sum(spot.width for spot in layer) + _GAP * max(len(layer) - 1, 0)


def _arrow(arrow: DiagramEdge, chain: Sequence[_Spot]) -> Iterator[str]:
    classes = _classes(bold=arrow.is_bold, dashed=arrow.is_dashed, faint=arrow.is_faint)
    last = chain[-1]
    start, end_y = chain[0], last.y - 6
    x, y = start.x, start.y + start.height
    path = f"M{x:.0f} {y:.0f}"
    for spot in chain[1:]:
        to_y = end_y if spot is last else spot.y
        middle = (y + to_y) / 2
        path += f"C{x:.0f} {middle:.0f} {spot.x:.0f} {middle:.0f} {spot.x:.0f} {to_y:.0f}"
        x, y = spot.x, to_y
    yield f"<g><title>{escape(arrow.detail or f'{arrow.source} to {arrow.destination}')}</title>"
    yield f'<path class="dag-edge{classes}" d="{path}"/>'
    yield f'<path class="dag-head{classes}" d="M{last.x - 4:.0f} {end_y:.0f}h8l-4 6z"/>'
    for number, line in enumerate(arrow.lines):
        y = end_y - (len(arrow.lines) - number) * _LINE + 8
        yield f'<text class="dag-label" x="{last.x + 8:.0f}" y="{y:.0f}">{escape(_shortened(line))}</text>'
    yield "</g>"


def _box(box: DiagramNode, spot: _Spot) -> Iterator[str]:
    faint = _classes(faint=box.is_faint)
    left = spot.x - spot.width / 2
    yield f"<g><title>{escape(f'{box.name}: {box.detail}' if box.detail else box.name)}</title>"
    yield (
        f'<rect class="dag-box{faint}{_classes(failed=box.is_failed)}" x="{left:.1f}" y="{spot.y:.0f}"'
        f' width="{spot.width:.1f}" height="{spot.height:.0f}" rx="4"/>'
    )
    for number, line in enumerate((box.name, *box.lines)):
        kind = "dag-line" if number else "dag-name"
        y = spot.y + 4 + (number + 1) * _LINE - 2
        yield f'<text class="{kind}{faint}" x="{left + _PAD:.1f}" y="{y:.0f}">{escape(_shortened(line))}</text>'
    yield "</g>"


def _label_right(arrow: DiagramEdge, chain: Sequence[_Spot]) -> float:
    return chain[-1].x + 8 + _CHAR * max((len(_shortened(line)) for line in arrow.lines), default=0)


def _classes(**on: bool) -> str:
    return "".join(f" {name}" for name, is_on in on.items() if is_on)


def _shortened(text: str) -> str:
    return text if len(text) <= _LETTERS_MAX else text[: _LETTERS_MAX - 1] + "…"
