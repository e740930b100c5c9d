"""The members that one statement has cost.

A statement whose work ends the member that does it (it takes all memory, or meets a bug of a kernel) would end one
member after the other if it were repeated for as long as there are any. A member that dies for another reason while a
statement runs looks the same from outside, so the first loss proves nothing, and the statement is tried once more.
After the second it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from secateur.errors import MemberLostError

__all__ = ["LOST_MEMBERS_MAX", "LostMembers", "cost_too_many"]

LOST_MEMBERS_MAX: Final = 2
"""Members that one statement or job may cost."""


class LostMembers:
    """Counts the members that ended while they worked on a statement or a job.

    Args:
        what: What they worked on, for the message.
        is_gone: Whether a member has ended, rather than broken one connection.
    """

    def __init__(self, what: str, is_gone: Callable[[str], bool]) -> None:
        self._what = what
        self._is_gone = is_gone
        self._members: list[str] = []

    def note(self, member: str, error: MemberLostError) -> None:
        """A member did not answer any more.

        Raises:
            MemberLostError: Too many have ended so. Names them; to repeat the statement may cost more.
        """
        if member in self._members or not self._is_gone(member):
            return
        self._members.append(member)
        if len(self._members) >= LOST_MEMBERS_MAX:
            raise cost_too_many(self._what, self._members) from error


def cost_too_many(what: str, members: list[str]) -> MemberLostError:
    """The error of what has cost so many members that it is not tried again."""
    named = " and ".join(members)
    return MemberLostError(
        f"members {named} ended while they worked on this {what}, which is not tried on another: it may have taken all"
        f" memory there. Look into the logs of {named} before you repeat it, ask for less at a time, or start the"
        " cluster with a smaller kernel_memory_bytes_max",
        members=list(members),
    )
