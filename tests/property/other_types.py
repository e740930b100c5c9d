"""Values for the parameters of a random statement that have other types than those that it was made with.

A plan is kept for the next execution of its text: a statement is executed with its own values, with these, and with its
own again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

__all__ = ["in_turn"]


def in_turn(rng: random.Random, params: Sequence[Any]) -> Iterator[list[Any]]:
    """The values of a statement, values of other types, and the first ones again; without any, an empty list."""
    yield [*params]
    others = [_other(rng, value) for value in params]
    if list(map(repr, others)) != list(map(repr, params)):
        yield others
        yield [*params]


def _other(rng: random.Random, value: Any) -> Any:
    match value:
        case bool():
            return value
        case int():
            return rng.choice(
                [value, value + 2**31, value - 2**40, value + 2**63, Decimal(value), Decimal(f"{value}.50")]
            )
        case Decimal() if value.is_finite():
            return rng.choice([value, Decimal(f"{value:f}{'' if '.' in f'{value:f}' else '.'}25"), -value, int(value)])
        case datetime():
            return value.replace(tzinfo=UTC if value.tzinfo is None else None)
        case list():
            return [_other(rng, item) for item in value]
        case _:
            return value
