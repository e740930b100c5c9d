"""Places: nothing overlaps, lines go from box to box."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from secateur.drawing import Arrow, Box, Diagram
from secateur.drawing.layout import Block, lay_out


def at_random(seed: int) -> Diagram:
    source = random.Random(seed)
    count = source.randrange(1, 25)
    boxes = tuple(Box(f"{number} {'x' * source.randrange(12)}", ("line",) * source.randrange(3)) for number in range(count))
    ends = [sorted(source.sample(range(count), 2)) for _ in range(source.randrange(2 * count)) if count > 1]
    arrows = tuple(Arrow(boxes[first].name, boxes[second].name, ("words",) * source.randrange(3)) for first, second in ends)
    return Diagram(boxes, arrows, ("caption",) * source.randrange(2))


def overlap(one: Block, other: Block) -> bool:
    across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return across > 1e-6 and down > 1e-6


@pytest.mark.parametrize("seed", range(60))
def test_no_text_overlaps_another_and_all_are_inside(seed: int) -> None:
    layout = lay_out(at_random(seed))
    blocks = [block for block in (layout.caption, *layout.boxes, *layout.labels) if block is not None]
    assert not [pair for pair in combinations(blocks, 2) if overlap(*pair)]
    assert min(min(block.x, block.y) for block in blocks) >= 0
    assert all(block.x + block.width <= layout.width and block.y + block.height <= layout.height for block in blocks)


@pytest.mark.parametrize("seed", range(60))
def test_lines_lead_down_from_their_source_to_their_destination(seed: int) -> None:
    diagram = at_random(seed)
    layout = lay_out(diagram)
    block_of = dict(zip((box.name for box in diagram.boxes), layout.boxes, strict=True))
    for arrow, line in zip(diagram.arrows, layout.lines, strict=True):
        source, destination = block_of[arrow.source], block_of[arrow.destination]
        (x0, y0), (x1, y1) = line.points[0], line.points[-1]
        assert source.x < x0 < source.x + source.width
        assert destination.x < x1 < destination.x + destination.width
        assert (y0, y1) == (source.y + source.height, destination.y)
        assert [y for _, y in line.points] == sorted(y for _, y in line.points)


def test_a_chain_is_straight() -> None:
    layout = lay_out(Diagram((Box("a"), Box("a long name"), Box("c")), (Arrow("a", "a long name", ("words",)), Arrow("a long name", "c"))))
    assert {round(block.x + block.width / 2, 3) for block in layout.boxes} == {12 + (11 * 7.25 + 20) / 2}


def test_an_empty_diagram_has_only_margins() -> None:
    layout = lay_out(Diagram((), ()))
    assert (layout.width, layout.height, layout.boxes) == (12, 12, ())
