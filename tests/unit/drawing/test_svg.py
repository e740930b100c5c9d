"""The picture: well formed whatever the texts are, always the same, and fast."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from secateur.drawing import Arrow, Box, Diagram
from secateur.drawing.svg import svg

GOLDEN = Path(__file__).with_name("golden.svg")
SVG = "{http://www.w3.org/2000/svg}"

SAMPLE = Diagram(
    (Box("scan", ("m1 x2",)), Box("left out", is_faint=True), Box("sum", detail="one line\nand another")),
    (
        Arrow("scan", "sum", ("partitioned(k)", "distributed"), "all of it", is_bold=True),
        Arrow("left out", "sum", is_dashed=True, is_faint=True),
    ),
    ("on 1 of 2 members",),
)


def texts(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def titles(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter(f"{SVG}title")]


def layered_diagram(layers: int, width: int) -> Diagram:
    boxes = tuple(Box(f"vertex {layer}.{place}", ("x2",)) for layer in range(layers) for place in range(width))
    arrows = tuple(
        Arrow(f"vertex {layer}.{place}", f"vertex {layer + 1}.{(place + step) % width}", ("unicast",))
        for layer in range(layers - 1)
        for place in range(width)
        for step in (0, 3)
    )
    return Diagram(boxes, arrows)


def test_golden() -> None:
    """A change of looks changes this file, on purpose."""
    assert svg(SAMPLE) == GOLDEN.read_text(encoding="utf-8").rstrip("\n")


def test_the_texts_and_tooltips() -> None:
    picture = svg(SAMPLE)
    assert texts(picture) == ["on 1 of 2 members", "scan", "m1 x2", "left out", "sum", "partitioned(k)", "distributed"]
    assert titles(picture) == ["scan", "left out", "sum\none line\nand another", "all of it"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a < b && \"c\" > 'd'", "a < b && \"c\" > 'd'", id="markup"),
        pytest.param("</svg><script>alert(1)</script>", "</svg><script>alert(1)</script>", id="script"),
        pytest.param("größe 表格 🌿", "größe 表格 🌿", id="unicode"),
        pytest.param("a\x00b\x1bc\ud800", "a\ufffdb\ufffdc\ufffd", id="what-xml-cannot-hold"),
        pytest.param("]]>", "]]>", id="cdata-end"),
    ],
)
def test_any_name_is_shown_as_it_is(name: str, shown: str) -> None:
    picture = svg(Diagram((Box(name), Box("b")), (Arrow(name, "b", (name,), name),), (name,)))
    assert texts(picture) == [shown, shown, "b", shown]
    assert titles(picture) == [shown, "b", shown]


def test_a_long_name_is_whole_in_the_tooltip() -> None:
    name = "read the orders of all customers in all the regions"
    picture = svg(Diagram((Box(name),), ()))
    assert texts(picture) == ["read the orders of all customer…"]
    assert titles(picture) == [name]


def test_nothing_reaches_beyond_the_picture() -> None:
    picture = svg(SAMPLE)
    assert not [word for word in ("<style", "<script", "href", " id=", "class=", "url(") if word in picture]


def test_the_same_in_another_process() -> None:
    """Nothing depends on the hashes of strings or the addresses of objects."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_svg import *; sys.stdout.write(svg(layered_diagram(6, 7)))"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout == svg(layered_diagram(6, 7))


def test_200_vertices_in_a_tenth_of_a_second() -> None:
    diagram = layered_diagram(20, 10)
    assert len(diagram.boxes) == 200
    times = []
    for _ in range(3):
        begun = time.process_time()
        svg(diagram)
        times.append(time.process_time() - begun)
    assert min(times) < 0.1
