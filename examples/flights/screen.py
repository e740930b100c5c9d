"""How the demo looks: steps with their time while it works, tables, and plans.

The only file here that knows ``rich``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from examples.flights.answer import Answer
from examples.flights.questions import Question
from secateur.cluster import MemberInfo

__all__ = ["Screen"]

_WIDTH: Final = 132
_ROWS_MAX: Final = 6


class Screen:
    """Standard output, with a spinner where that is a terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=_WIDTH)

    def heading(self, text: str) -> None:
        self._console.print()
        self._console.rule(Text(text, style="bold"), align="left", style="dim")

    @contextmanager
    def step(self, text: str) -> Iterator[list[str]]:
        """Show the current step, then its duration; strings that the body adds to the list are shown after it."""
        notes: list[str] = []
        started = time.perf_counter()
        if not self._console.is_terminal:
            self._console.print(f"  {text} ...")
        with self._console.status(text):
            yield notes
        self._console.print(
            Text.assemble(
                ("✓ ", "green"), f"{text}: {time.perf_counter() - started:.1f} s", (" ".join(["", *notes]), "dim")
            )
        )

    def findings(self, findings: Mapping[str, int]) -> None:
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column(justify="right")
        table.add_column()
        for what, count in findings.items():
            table.add_row(f"{count:,}", what)
        self._console.print(Padding(table, (0, 2), expand=False))

    def members(self, members: Sequence[MemberInfo]) -> None:
        table = _table("member", "address", "state", "primary partitions", "backup partitions", "rows", "megabytes")
        for member in members:
            megabytes = f"{member.bytes / 1e6:.1f}"
            table.add_row(
                member.id,
                member.address,
                member.state,
                str(member.partitions_primary),
                str(member.partitions_backup),
                f"{member.rows:,}",
                megabytes,
            )
        self._console.print(Padding(table, (0, 2), expand=False))

    def answer(self, question: Question, answer: Answer) -> None:
        self.heading(question.title)
        self._console.print(Text(question.sql.strip(), style="cyan"))
        if question.parameters:
            self._console.print(Text(f"with {', '.join(question.parameters)}", style="dim"))
        table = _table(*answer.columns)
        for row in answer.rows[:_ROWS_MAX]:
            table.add_row(*(_cell(value) for value in row))
        self._console.print(Padding(table, (0, 2), expand=False))
        if len(answer.rows) > _ROWS_MAX:
            self._console.print(Text(f"  and {len(answer.rows) - _ROWS_MAX} more rows", style="dim"))
        self._console.print(Padding(Text(answer.explain, style="dim"), (1, 2), expand=False))
        self._console.print(
            Text.assemble(
                "  ",
                (f"{answer.members[0]} of {answer.members[1]} members", "bold green"),
                f", {answer.partitions[0]} of {answer.partitions[1]} partitions, {answer.execution}: ",
                (f"{answer.pruned_ms:.2f} ms", "bold green"),
                f" (pruning off: {answer.unpruned_ms:.2f} ms). The same rows as DuckDB.",
            )
        )

    def summary(self, answers: Mapping[str, Answer]) -> None:
        table = _table("question", "members", "partitions", "execution", "pruned, ms", "unpruned, ms", "ratio")
        for title, answer in answers.items():
            members, partitions = (
                f"{answer.members[0]} / {answer.members[1]}",
                f"{answer.partitions[0]} / {answer.partitions[1]}",
            )
            ratio = f"{answer.unpruned_ms / answer.pruned_ms:.1f} x"
            table.add_row(
                title,
                members,
                partitions,
                answer.execution,
                f"{answer.pruned_ms:.2f}",
                f"{answer.unpruned_ms:.2f}",
                ratio,
            )
        self._console.print(Padding(table, (0, 2), expand=False))

    def say(self, text: str) -> None:
        self._console.print(Text(text))


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _cell(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case float():
            return f"{value:.2f}"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case Decimal():
            return str(value)
        case _:
            return str(value)
