"""The result of ``Connection.explain``."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.drawable import Drawable

_MEMBERS_SHOWN_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class Explain(Drawable):
    """The plan of a statement: ``str()`` is the text, :meth:`to_dict` the same as data.

    A notebook shows its DAG as a picture, below the rest of the text.
    """

    text: str
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The ``EXPLAIN (FORMAT JSON)`` form; a copy."""
        return copy.deepcopy(self.data)

    def to_text(self) -> str:
        """The text of EXPLAIN."""
        return self.text

    def diagram(self) -> Diagram:
        """Draw a box for each vertex with its members, an arrow for each edge, and the partitions and members above."""
        dag = self.data["dag"]
        boxes = []
        for vertex in dag["vertices"]:
            places = [f"{member} x{vertex['local_parallelism']}" for member in vertex["members"]]
            boxes.append(DiagramNode(vertex["name"], abbreviated(places, _MEMBERS_SHOWN_MAX), "\n".join(places)))
        arrows = tuple(
            DiagramEdge(
                edge["from"],
                edge["to"],
                (edge["kind"], *(["distributed"] if edge["distributed"] else [])),
                is_bold=edge["distributed"],
            )
            for edge in dag["edges"]
        )
        return Diagram(tuple(boxes), arrows, tuple(self.text.partition("\ndag:\n")[0].split("\n")))
