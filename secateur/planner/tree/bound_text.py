"""The text that DuckDB has bound: what of an expression is the user's, and what the binder has added."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import parts

_CAST: Final = re.compile(rb"::|(?:try_)?cast\b", re.IGNORECASE)
_QUOTED: Final = re.compile(rb"'[^']*'|\"[^\"]*\"")
_INNERMOST: Final = re.compile(rb"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class BoundText:
    """The text that was bound.

    Attributes:
        text: In UTF-8: DuckDB counts bytes.
        parameters: Where it has the parameters, as offset and length: one that is elsewhere is in a cast of the user's.
    """

    text: bytes = b""
    parameters: frozenset[tuple[int, int]] = frozenset()

    def is_bare(self, node: ex.AnyExpression) -> bool:
        """Whether a node is a parameter that the user has not cast: its value has a type of its own."""
        return (
            isinstance(node, ex.BoundParameter) and (node.query_location, node.query_location_length) in self.parameters
        )

    def is_tried(self, node: ex.AnyExpression) -> bool:
        """Whether the user's text has TRY_CAST in the place of a node."""
        start = node.query_location
        return start is not None and self.text[start : start + 8].upper() == b"TRY_CAST"

    def takes_type(self, node: ex.AnyExpression) -> bool:
        """Whether the type of an expression may be that of a parameter's value."""
        if isinstance(node, ex.Call) and node.name == "__cast" and not self.is_implicit(node):
            return False
        if self.has_cast(node):
            return False
        return self.is_bare(node) or any(self.takes_type(part) for part in parts(node))

    def has_cast(self, node: ex.AnyExpression) -> bool:
        """Whether the user's text casts an expression to the type that it has only with some types of parameters.

        DuckDB leaves out a cast to the type that an expression has, which gets the place of the cast.
        """
        start, length = node.query_location, node.query_location_length
        if start is None or length is None or (isinstance(node, ex.Call) and node.name == "__cast"):
            return False
        written = self.text[start : start + length]
        return _is_cast(written) and any(self.takes_type(part) for part in parts(node))

    def is_implicit(self, cast: ex.Call) -> bool:
        """Whether DuckDB's binder made a cast, and makes it again when it binds the expression without it."""
        if cast.name != "__cast" or cast.function_data["try_cast"] or cast.query_location is None:
            return False
        (child,) = cast.children
        place = cast.query_location, cast.query_location_length
        if not isinstance(child, ex.InputColumn):
            return place == (child.query_location, child.query_location_length)
        # A column has no place of its own. A cast of the user's is at CAST, or at the colons.
        written = self.text[place[0] : place[0] + (place[1] or 0)]
        return bool(written) and _CAST.match(written) is None


def _is_cast(written: bytes) -> bool:
    """Whether a text is a cast, and nothing else: ``CAST(a AS INTEGER) * $1`` begins with one."""
    if _CAST.match(written) is None or written.startswith(b"::"):
        return written.startswith(b"::")
    plain, count = _QUOTED.sub(b"", written), 1
    while count and plain.count(b"(") > 1:
        plain, count = _INNERMOST.subn(b"", plain)
    return plain.endswith(b")") and plain.count(b"(") == 1
