"""The admission of the statements of clients, long and quick ones."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from secateur.cluster.member.admission.statement_admission import StatementAdmission
from secateur.cluster.member.statements.local_execution import LocalExecution
from secateur.engine.sql.kernel_call import is_long_over


@dataclass(frozen=True, slots=True)
class Admissions:
    """The admission of the statements of clients; each kind waits for its own.

    Attributes:
        long: Statements that read many rows, or rows of several members, or run in steps.
        quick: Statements over few rows of this member, or of a few partitions of several.
    """

    long: StatementAdmission
    quick: StatementAdmission

    def of(self, call: LocalExecution) -> StatementAdmission:
        """The admission for a statement that is one call on this member."""
        return self.long if is_long_over(call.rows) else self.quick

    def is_waiting(self, task: asyncio.Future[Any]) -> bool:
        """Whether the statement on which a task works waits for its turn."""
        return self.long.is_waiting(task) or self.quick.is_waiting(task)

    def waited_s(self, task: asyncio.Task[Any]) -> float:
        """Seconds for which the statement on which a task works has waited for its turn."""
        return self.long.waited_s(task) + self.quick.waited_s(task)
