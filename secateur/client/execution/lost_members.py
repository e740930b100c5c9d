"""Counts the members that one statement has cost.

A statement whose work ends its member (it takes all memory, or triggers a bug of a kernel) would end one member after
the other if it were repeated as long as there are any. A member that dies for another reason while a statement runs
looks the same from outside, so the first loss proves nothing, and the statement is retried once. After the second it is
not.
"""

from __future__ import annotations

from typing import Final

from secateur.errors import MemberLostError

LOST_MEMBERS_MAX: Final = 2
"""Members that one statement or job may cost."""


def cost_too_many(what: str, members: list[str]) -> MemberLostError:
    """Return the error of work that has cost so many members that it is not retried."""
    named = " and ".join(members)
    return MemberLostError(
        f"members {named} ended while they ran this {what}, so no other member tries it: it may use too"
        f" much memory. Read the logs of {named} before you repeat it, ask for less at a time, or start the"
        " cluster with a smaller kernel_memory_bytes_max",
        members=list(members),
    )
