"""A diagram: boxes and arrows with their texts, before anybody knows where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Diagram", "DiagramEdge", "DiagramNode", "abbreviated"]


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A node.

    Attributes:
        name: Unique in the diagram; its heading.
        lines: Texts below the heading.
        detail: What is shown when the pointer rests on it, beside the full name; may have several lines.
        is_faint: Whether it stands for something that is left out.
    """

    name: str
    lines: tuple[str, ...] = ()
    detail: str = ""
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A connection.

    Attributes:
        source: Name of the box where it starts.
        destination: Name of the box where it ends.
        lines: Texts beside it.
        detail: What is shown when the pointer rests on its texts.
        is_bold: Whether it is drawn bold.
        is_dashed: Whether it is drawn dashed.
        is_faint: Whether it stands for something that is left out.
    """

    source: str
    destination: str
    lines: tuple[str, ...] = ()
    detail: str = ""
    is_bold: bool = False
    is_dashed: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """A graph without cycles.

    Attributes:
        boxes: In topological order: each after all that point to it.
        arrows: Between them; two boxes may have several.
        captions: Lines above the picture.
    """

    boxes: tuple[DiagramNode, ...]
    arrows: tuple[DiagramEdge, ...]
    captions: tuple[str, ...] = ()


def abbreviated(lines: Sequence[str], lines_max: int) -> tuple[str, ...]:
    """The lines; if there are more than ``lines_max``, the first of them and a last one that counts the rest."""
    return (
        tuple(lines) if len(lines) <= lines_max else (*lines[: lines_max - 1], f"and {len(lines) - lines_max + 1} more")
    )
