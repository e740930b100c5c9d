"""What the makers of the parts of a statement hand to each other, and the state that they share."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Column", "Columns", "Made", "Maker", "Source"]

Columns = tuple[tuple[str, str], ...]
"""Names, each with the kind of the values."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column in reach: how it is written, and the kind of its values."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Source:
    """What stands in FROM: its text, the columns in reach, and those that ``*`` stands for."""

    sql: str
    reach: tuple[Column, ...]
    starred: Columns


@dataclass(frozen=True, slots=True)
class Made:
    """A query: its text and its columns."""

    sql: str
    columns: Columns


@dataclass
class Maker(ABC):
    """What every maker has.

    Attributes:
        rng: Decides.
        tables: The tables that there are.
        params: The values of the parameters of what has been made.
    """

    rng: random.Random
    tables: Sequence[str]
    params: list[Any] = field(default_factory=list)
    ctes: list[tuple[str, Columns]] = field(default_factory=list)
    count: int = 0
    room: int = 7

    @abstractmethod
    def query(self, depth: int, outer: tuple[Column, ...], kinds: str | None, *, ctes: bool = False) -> Made:
        """A query with columns of some kinds, or of any, that may look at columns of the queries around it."""

    @abstractmethod
    def source(self, depth: int, outer: tuple[Column, ...]) -> Source:
        """What may stand in FROM."""

    def name(self, prefix: str) -> str:
        """A name that nothing has yet; some are written in quotation marks, with letters of any case."""
        self.count += 1
        if prefix == "x" and self.rng.random() < 0.12:
            return self.rng.choice(['"X {}"', '"é{}"', '"select{}"', '"--{}"', "X{}", '"it\'s{}"']).format(self.count)
        return f"{prefix}{self.count}"

    def parameter(self, value: Any) -> str:
        """The mark of a parameter, for which :class:`Placeable` writes a number."""
        self.params.append(value)
        return f"\0{len(self.params)}\0"

    def column(self, reach: Sequence[Column], kind: str | None = None) -> Column:
        """One of the columns in reach, or a constant where none is of the kind."""
        found = [column for column in reach if kind is None or column.kind == kind]
        return self.rng.choice(found) if found else Column(self.constant(kind or "i"), kind or "i")

    def key(self, reach: Sequence[Column], kind: str) -> Column:
        """A column to be compared with others: most often the first that is called ``k``, then ``j``."""
        for name, share in (("k", 0.65), ("j", 0.5)):
            found = [column for column in reach if column.kind == kind and column.text.endswith(f".{name}")]
            if found and self.rng.random() < share:
                return self.rng.choice(found)
        return self.column(reach, kind)

    @abstractmethod
    def constant(self, kind: str) -> str:
        """A literal or parameter."""
