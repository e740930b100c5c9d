"""KILL: end a running statement, of whichever connection, or a job.

::

    KILL 'm2:17'
    KILL 'controller:4'
    KILL JOB 'id or name'
"""

from __future__ import annotations

import re
from typing import Final

from secateur.errors import ProgrammingError
from secateur.planner.statement import KillJob, KillStatement
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import TokenKind

_ID: Final = re.compile(r"(.+):([0-9]{1,18})")


def read_kill(cursor: TokenCursor) -> KillStatement | KillJob:
    """Read a KILL statement.

    Args:
        cursor: At the word KILL.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
        ProgrammingError: The text is not the id of a statement.
    """
    cursor.expect("KILL")
    is_job = cursor.accept("JOB")
    token = cursor.peek()
    if token is None or token.kind is not TokenKind.STRING:
        raise cursor.expected(f"the id of a {'job' if is_job else 'statement'}, as 'text'")
    offset = cursor.offset
    text = cursor.take().text
    cursor.expect_end()
    if is_job:
        return KillJob(text)
    found = _ID.fullmatch(text)
    if found is None:
        raise cursor.error(
            ProgrammingError,
            f"{text!r} is not the id of a statement, such as 'm1:17': SELECT id, statement FROM secateur.statements"
            " WHERE state NOT IN ('done', 'failed') lists those that can be killed",
            offset,
            token.end - token.start + 1,
        )
    return KillStatement(found[1], int(found[2]))
