"""A diagram: boxes and arrows with their texts, without positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A node.

    Attributes:
        name: Unique in the diagram; its heading.
        lines: Texts below the heading.
        detail: The tooltip, shown with the full name; may have several lines.
        is_faint: Whether it represents something that is left out.
        is_failed: Whether it represents what has failed.
    """

    name: str
    lines: tuple[str, ...] = ()
    detail: str = ""
    is_faint: bool = False
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A connection.

    Attributes:
        source: Name of the box where it starts.
        destination: Name of the box where it ends.
        lines: Texts beside it.
        detail: The tooltip of its texts.
        is_bold: Whether it is drawn bold.
        is_dashed: Whether it is drawn dashed.
        is_faint: Whether it represents something that is left out.
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
