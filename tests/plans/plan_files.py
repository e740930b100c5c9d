"""The ``.sql`` files of this folder: how they are read and written.

A file is a list of blocks with a line of ``----`` between them. The first block says in comments what the file is
about, and which tables its statements use: ``-- tables: shop`` names files of ``tables/``, and the statements behind it
create tables, views and indexes for this file alone. ``-- rows: clients 20000, distinct: id 20000, region 2000`` is
what the statistics say of a table that has no rows.

Every other block is one case: a comment that is its title, directives, one statement, and in ``/* */`` what EXPLAIN
answers. The directives are

- ``-- parameters: 'C2', 5`` or ``-- parameters: {'who': 'C2'}``: Python values for the placeholders. Without it they
  stay unbound;
- ``-- set: pruning = off``: a setting of the session;
- ``-- show: texts``: the columns that are read and the texts that members run, in place of EXPLAIN;
- ``-- partitions=1 members=1 execution=local``: what the statement touches when it runs. Only for tables that have
  rows.

Where the statement is refused, the expected text is the class of the error and its message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
TABLES = ROOT / "tables"
SEPARATOR = "\n----\n"
OPENING, CLOSING = "\n/*\n", "\n*/"
VALUES = {"date": date, "datetime": datetime, "time": time, "timedelta": timedelta, "Decimal": Decimal}


@dataclass(frozen=True)
class Case:
    """One statement and what EXPLAIN answers.

    Attributes:
        comments: The title and the directives, as they stand in the file.
        sql: The statement.
        expected: The expected text; None where nobody has written one yet.
    """

    comments: tuple[str, ...]
    sql: str
    expected: str | None

    @property
    def title(self) -> str:
        return self.comments[0].removeprefix("--").strip()

    @property
    def parameters(self) -> Sequence[Any] | Mapping[str, Any] | None:
        text = self._directive("parameters")
        if text is None:
            return None
        given = eval(text if text.startswith("{") else f"[{text}]", VALUES)
        return given if isinstance(given, dict) else list(given)

    @property
    def settings(self) -> dict[str, str]:
        text = self._directive("set")
        return {} if text is None else dict([(part.strip() for part in text.split("=", 1))])

    @property
    def shows_texts(self) -> bool:
        return self._directive("show") == "texts"

    @property
    def touched(self) -> dict[str, str]:
        """The figures that the run of the statement must have."""
        return {
            name: value
            for line in self.comments[1:]
            if re.match(r"-- \w+=", line)
            for name, value in re.findall(r"(\w+)=(\S+)", line)
        }

    def _directive(self, name: str) -> str | None:
        found = [
            line.removeprefix(f"-- {name}:").strip() for line in self.comments[1:] if line.startswith(f"-- {name}:")
        ]
        return found[0] if found else None

    @property
    def text(self) -> str:
        return "\n".join([*self.comments, self.sql]) + (
            "" if self.expected is None else f"{OPENING}{self.expected}{CLOSING}"
        )


@dataclass(frozen=True)
class PlanFile:
    """A file of cases.

    Attributes:
        path: Where it is.
        head: Its first block.
        definitions: The statements that make its tables, those of other files first.
        statistics: Table, number of rows, and number of distinct values by column.
        cases: In the order of the file.
    """

    path: Path
    head: str
    definitions: tuple[str, ...]
    statistics: tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...] = field(repr=False)
    cases: tuple[Case, ...] = field(repr=False)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).with_suffix("").as_posix()

    @property
    def has_rows(self) -> bool:
        """Whether its tables have rows, so that its statements are executed too."""
        return any(statement.startswith("INSERT") for statement in self.definitions)

    def with_expectations(self, expected: Sequence[str]) -> PlanFile:
        return replace(
            self, cases=tuple(replace(case, expected=text) for case, text in zip(self.cases, expected, strict=True))
        )

    @property
    def text(self) -> str:
        return SEPARATOR.join([self.head, *(case.text for case in self.cases)]) + "\n"


def statements_of(text: str) -> list[str]:
    """The statements of a text that defines tables, without comments."""
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def read_tables(name: str) -> list[str]:
    """The statements that make the tables of a file in ``tables/``."""
    return statements_of((TABLES / f"{name}.sql").read_text())


def read_file(path: Path) -> PlanFile:
    head, *blocks = path.read_text().removesuffix("\n").split(SEPARATOR)
    used = [
        name
        for line in head.splitlines()
        if line.startswith("-- tables:")
        for name in line.removeprefix("-- tables:").split()
    ]
    definitions = (*(statement for name in used for statement in read_tables(name)), *statements_of(head))
    statistics = tuple(_statistics(line) for line in head.splitlines() if line.startswith("-- rows:"))
    return PlanFile(path, head, definitions, statistics, tuple(map(_case, blocks)))


def read_all() -> list[PlanFile]:
    return [read_file(path) for path in sorted(ROOT.rglob("*.sql")) if TABLES not in path.parents]


def _case(block: str) -> Case:
    body, opening, expected = block.partition(OPENING)
    lines = body.splitlines()
    count = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    assert count, f"a case begins with its title: {block}"
    return Case(tuple(lines[:count]), "\n".join(lines[count:]), expected.removesuffix(CLOSING) if opening else None)


def _statistics(line: str) -> tuple[str, int, tuple[tuple[str, int], ...]]:
    found = re.fullmatch(r"-- rows: (\w+) (\d+), distinct: (.*)", line)
    assert found, f"expected -- rows: table 1000, distinct: column 10, column 20, found {line}"
    table, rows, distinct = found.groups()
    return table, int(rows), tuple((name, int(count)) for name, count in re.findall(r"(\w+) (\d+)", distinct))
