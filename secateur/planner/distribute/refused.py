"""Why a query is not divided."""

from __future__ import annotations


class NotDivided(Exception):  # noqa: N818 - not an error: it says that a query stays whole, and why
    """A query stays whole.

    Args:
        reason: Why, in the user's terms.
        location: Where the part of the text is that prevents it, if it is a part.
    """

    def __init__(self, reason: str, location: int | None = None) -> None:
        super().__init__(reason)
        self.location = location
