"""Diagrams as SVG: where boxes stand, and that nothing of a text becomes markup."""

from __future__ import annotations

from xml.etree import ElementTree

from secateur.drawing import Diagram, DiagramEdge, DiagramNode, layered_svg


def rects(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of the boxes, in their order."""
    found = []
    for rect in ElementTree.fromstring(svg).iter("rect"):
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def test_a_box_stands_below_all_that_point_to_it_and_none_covers_another() -> None:
    names = ["a", "b", "c", "join with a long name", "result"]
    diagram = Diagram(
        tuple(DiagramNode(name, ("m1 x2",)) for name in names),
        tuple(
            DiagramEdge(source, to, ("partitioned",))
            for source, to in (("a", names[3]), ("b", names[3]), ("c", "result"), (names[3], "result"), ("b", "result"))
        ),
    )
    svg = layered_svg(diagram, "a plan")
    placed = dict(zip(names, rects(svg), strict=True))
    for arrow in diagram.arrows:
        assert placed[arrow.source][3] < placed[arrow.destination][1]
    boxes = list(placed.values())
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top
    root = ElementTree.fromstring(svg)
    assert all(left >= 0 and right <= float(root.attrib["width"]) for left, _, right, _ in boxes)
    assert all(top >= 0 and bottom <= float(root.attrib["height"]) for _, top, _, bottom in boxes)
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "a plan")


def test_texts_stay_texts_and_styles_are_classes() -> None:
    diagram = Diagram(
        (DiagramNode('<script>"&', ("x" * 60,), "<b>", is_faint=True), DiagramNode("b")),
        (DiagramEdge('<script>"&', "b", ("<i>",), is_bold=True, is_dashed=True, is_faint=True),),
    )
    root = ElementTree.fromstring(layered_svg(diagram, '"<&'))
    assert [text.text for text in root.iter("text")] == ["<i>", '<script>"&', "x" * 33 + "…", "b"]
    assert [path.attrib["class"] for path in root.iter("path")] == [
        "dag-edge bold dashed faint",
        "dag-head bold dashed faint",
    ]
    assert next(root.iter("rect")).attrib["class"] == "dag-box faint"
    assert not [element for element in root.iter() if "style" in element.attrib or "fill" in element.attrib]


def test_an_empty_diagram_is_a_picture() -> None:
    assert ElementTree.fromstring(layered_svg(Diagram((), ()), "nothing")).tag == "svg"
