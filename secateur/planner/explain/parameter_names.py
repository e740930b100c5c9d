"""Parameters in the texts of EXPLAIN under the names that the user gave them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PARAMETER: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$([0-9]+)")


def with_parameter_names(text: str, names: Sequence[str]) -> str:
    """Write ``$name`` for ``$1`` in a text, but not inside of strings and quoted names.

    Args:
        text: A partition tree, a predicate or a query, with parameters counted from 1.
        names: The names of the statement's parameters in order; empty if they have none. Parameters after those are
            values of subqueries, and keep their numbers.
    """

    def named(match: re.Match[str]) -> str:
        number = match[1]
        return f"${names[int(number) - 1]}" if number and 1 <= int(number) <= len(names) else match[0]

    return _PARAMETER.sub(named, text) if names else text
