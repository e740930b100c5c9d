"""Three-valued logic: the truth values asked of a predicate, and the question that it passes to its parts.

A WHERE clause asks for TRUE, ``NOT p`` asks for FALSE of p, ``p IS NOT TRUE`` for FALSE or NULL. AND and OR pass the
question on:

=========  ===================================  ==================================
asked      AND                                  OR
=========  ===================================  ==================================
TRUE       every part TRUE                      some part TRUE
FALSE      some part FALSE                      every part FALSE
not FALSE  every part not FALSE                 some part not FALSE
not TRUE   some part not TRUE                   every part not TRUE
NULL       every part not FALSE, and some NULL  every part not TRUE, and some NULL
not NULL   every part TRUE, or some FALSE       every part FALSE, or some TRUE
=========  ===================================  ==================================
"""

from __future__ import annotations

from enum import Flag, auto


class Truth(Flag):
    """A set of truth values."""

    TRUE = auto()
    FALSE = auto()
    NULL = auto()
    NOT_TRUE = FALSE | NULL
    NOT_FALSE = TRUE | NULL
    NOT_NULL = TRUE | FALSE

    @property
    def negated(self) -> Truth:
        """The values of p for which ``NOT p`` has one of these."""
        swapped = self & Truth.NULL
        if Truth.TRUE in self:
            swapped |= Truth.FALSE
        if Truth.FALSE in self:
            swapped |= Truth.TRUE
        return swapped
