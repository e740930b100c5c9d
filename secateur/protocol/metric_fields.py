"""Fields of messages that are metrics: what one counts is written in its annotation, and nowhere else.

``/metrics`` reads the annotations, and the docstrings of the messages have what they say.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TypeVar, get_type_hints

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Gauge:
    """The annotation of a field that is a metric of Prometheus, a number that rises and falls.

    Attributes:
        meaning: What it counts.
        name: Its name there, without what all metrics of such messages begin with and without ``_total``; "" for that
            of the field.
    """

    meaning: str = field(repr=False)  # neither is in the signature that help() shows
    name: str = field(default="", repr=False)


class Counter(Gauge):
    """The same of a number that only rises, until its process begins anew."""


def metrics_of(row: type[msgspec.Struct]) -> dict[str, Gauge]:
    """The annotations of the fields that are metrics, by field, in their order."""
    hints = get_type_hints(row, include_extras=True)
    notes = ((name, note) for name in row.__struct_fields__ for note in getattr(hints[name], "__metadata__", ()))
    return {name: note for name, note in notes if isinstance(note, Gauge)}


def with_metrics(row: type[S]) -> type[S]:
    """Decorate a message whose docstring ends with its attributes: the fields that are metrics are added to them."""
    lines = [f"    {name}: {note.meaning[0].upper()}{note.meaning[1:]}." for name, note in metrics_of(row).items()]
    row.__doc__ = "\n".join([inspect.cleandoc(row.__doc__ or ""), *lines])
    return row
