"""The rows of ``secateur.settings``: with what the cluster was started, and what it would be by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any, Final

from secateur.cluster.settings import DEFAULTS, ClusterSettings
from secateur.protocol.pruning import Pruning
from secateur.tunable import description_of, tunables_of

_NUMBERS: Final = ("engine_limits", "cost_model")
"""Settings that are groups of numbers, each of which is a row."""
_HIDDEN: Final = "(hidden)"
_MADE_AT_RANDOM: Final = frozenset({"cluster_id", "token"})


def setting_rows(settings: ClusterSettings, pruning: Pruning) -> Iterator[dict[str, str | None]]:
    """List the settings of :func:`secateur.start`, then the numbers of its ``engine_limits`` and ``cost_model``.

    Args:
        settings: Those of this cluster.
        pruning: What SET GLOBAL pruning has made of it since.

    Yields:
        ``name``, ``value``, ``default`` and ``description``. Values are texts, and None where a setting is not set; a
        token is not shown.
    """
    for one in fields(ClusterSettings):
        description = description_of(one)
        if description is None or one.name in _NUMBERS:
            continue
        value = pruning if one.name == "pruning" else getattr(settings, one.name)
        yield {
            "name": one.name,
            "value": _HIDDEN if one.name == "token" and value is not None else _text(value),
            "default": None if one.name in _MADE_AT_RANDOM else _text(getattr(DEFAULTS, one.name)),
            "description": description,
        }
    for group in _NUMBERS:
        numbers = getattr(settings, group)
        for number in tunables_of(type(numbers)):
            yield {
                "name": number.name,
                "value": str(getattr(numbers, number.name)),
                "default": str(number.default),
                "description": f"{number.effect} ({number.unit}; a number of {group})",
            }


def _text(value: Any) -> str | None:
    if value is None or value == ():
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    return ", ".join(value) if isinstance(value, tuple) else str(value)
