"""What shows itself: with Graphviz, and without."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from secateur.drawing import Diagram, DiagramEdge, DiagramNode, Drawable, abbreviated
from secateur.errors import NotSupportedError


class Sample(Drawable):
    def to_text(self) -> str:
        return "scan -> sum"

    def to_dict(self) -> dict[str, Any]:
        return {"from": "scan", "to": "sum"}

    def diagram(self) -> Diagram:
        return Diagram(
            (DiagramNode("scan", ("m1 x2",), "all\nof it"), DiagramNode("sum <&>")),
            (DiagramEdge("scan", "sum <&>", ("partitioned(k)",), "route"),),
            ("on 1 of 2",),
        )


def test_without_graphviz_a_picture_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotSupportedError, match=r"install it .* or use to_mermaid"):
        Sample().to_svg()
    assert Sample()._repr_mimebundle_() == {"text/plain": "scan -> sum", "text/vnd.mermaid": Sample().to_mermaid()}


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_every_text_and_tooltip() -> None:
    statistics_snapshot = ElementTree.fromstring(Sample().to_svg())
    texts = {element.text for element in statistics_snapshot.iter("{http://www.w3.org/2000/svg}text")}
    assert texts == {"on 1 of 2", "scan", "m1 x2", "sum <&>", "partitioned(k)"}
    tooltips = {
        value
        for element in statistics_snapshot.iter()
        for name, value in element.attrib.items()
        if name.endswith("title")
    }
    assert {"scan\nall\nof it", "route"} <= tooltips
    assert Sample()._repr_mimebundle_()["image/svg+xml"] == Sample().to_svg()


def test_lines_beyond_the_bound_are_counted() -> None:
    assert abbreviated(["a", "b", "c"], 3) == ("a", "b", "c")
    assert abbreviated(["a", "b", "c", "d"], 3) == ("a", "b", "and 2 more")
