"""Set operations, common table expressions, order and limits, and whole statements."""

from __future__ import annotations

import re

from placed.parts import Column, Made
from placed.selects import Selects
from placed.sources import source_of
from placed.spelling import spelled

__all__ = ["Placeable"]

_LIMITS = ["LIMIT 3", "LIMIT 1", "LIMIT 4 OFFSET 2", "OFFSET 1"]


class Placeable(Selects):
    """Makes one statement."""

    def statement(self) -> str:
        """One statement; ``params`` are its parameters then."""
        return self.finished(self.query(self.rng.choice([1, 1, 2, 2, 3]), (), None, ctes=True).sql)

    def finished(self, sql: str) -> str:
        """The text with the numbers of its parameters, of which ``params`` has the values then, in one of its
        spellings.
        """
        used = list(dict.fromkeys(re.findall("\0(\\d+)\0", sql)))
        self.params = [self.params[int(number) - 1] for number in used]
        sql = spelled(self.rng, sql)
        return re.sub("\0(\\d+)\0", lambda match: f"${used.index(match[1]) + 1}", sql)

    def query(self, depth: int, outer: tuple[Column, ...], kinds: str | None, *, ctes: bool = False) -> Made:
        """A query with columns of some kinds, or of any, that may look at columns of the queries around it."""
        rng = self.rng
        if depth > 0 and rng.random() < (0.3 if ctes else 0.06):
            return self._with(depth, outer, kinds)
        depth = depth if self.room > 0 else 0
        shape = self._set_operation if depth > 0 and rng.random() < 0.15 else self.select
        made = shape(depth, outer, kinds)
        if rng.random() < 0.15 and "l" not in {kind for _, kind in made.columns} and " ORDER BY " not in made.sql:
            return self._ordered(made)
        return made

    def _ordered(self, made: Made) -> Made:
        rng = self.rng
        if rng.random() < 0.5:
            positions = rng.sample(range(len(made.columns)), len(made.columns))
            order = ", ".join(
                f"{self.position(at)}{rng.choice(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}"
                for at in positions
            )
            return Made(f"{made.sql} ORDER BY {order} {rng.choice(_LIMITS)}", made.columns)
        limit = rng.choice([*_LIMITS, "", "LIMIT 0", "LIMIT (SELECT 2)", "FETCH FIRST 2 ROWS ONLY", "LIMIT 50%"])
        return Made(f"{made.sql} ORDER BY ALL{rng.choice(['', ' DESC'])} {limit}", made.columns)

    def _with(self, depth: int, outer: tuple[Column, ...], kinds: str | None) -> Made:
        rng = self.rng
        before = len(self.ctes)
        texts = []
        recursive = rng.random() < 0.25
        if recursive:
            texts.append(self._recursion())
        for _ in range(rng.choice([1, 1, 2]) - recursive):
            made = self.query(depth - 1, (), None)
            hidden = {cte for cte, _ in self.ctes}
            shadows = [table for table in ("items", "orders", "copied") if table not in hidden and table in self.tables]
            name = rng.choice(shadows) if shadows and rng.random() < 0.2 else self.name("cte")
            columns = made.columns
            listed = ""
            if rng.random() < 0.2:
                columns = tuple((self.name("n"), kind) for _, kind in columns)
                listed = f"({', '.join(name for name, _ in columns)})"
            materialized = rng.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
            texts.append(f"{name}{listed} AS {materialized}({made.sql})")
            self.ctes.append((name, columns))
        made = self.query(depth, outer, kinds)
        del self.ctes[before:]
        inside = f"SELECT * FROM ({made.sql})" if made.sql.startswith("WITH") else made.sql
        return Made(f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(texts)} {inside}", made.columns)

    def _recursion(self) -> str:
        """Rows that are reached from some rows in a few steps."""
        rng = self.rng
        name, alias = self.name("cte"), self.name("x")
        tables = [table for table, _ in self.visible_tables()]
        where = self.where(source_of("", alias, (("k", "i"), ("i", "i"))).reach, (), 0)
        first = f"SELECT k::BIGINT AS k, 0 AS i FROM {rng.choice(tables)} {alias}{where}"
        joined = f"{rng.choice(tables)} {alias} JOIN {name} ON {alias}.k = {name}.k"
        step = f"SELECT {alias}.{rng.choice('ij')}::BIGINT, {name}.i + 1 FROM {joined} WHERE {name}.i < 2"
        self.ctes.append((name, (("k", "i"), ("i", "i"))))
        return f"{name} AS ({first} {rng.choice(['UNION', 'UNION ALL'])} {step})"

    def _set_operation(self, depth: int, outer: tuple[Column, ...], kinds: str | None) -> Made:
        rng = self.rng
        kinds = kinds or "".join(rng.choice("iisdwt") for _ in range(rng.choice([1, 2, 2])))
        parts = [self.query(depth - 1, outer, kinds) for _ in range(rng.choice([2, 2, 2, 3]))]
        if rng.random() < 0.1:
            names = [
                f"SELECT {', '.join(f'{name} AS {kind}{at}' for at, (name, kind) in enumerate(part.columns))} FROM"
                f" ({part.sql})"
                for part in parts
            ]
            columns = tuple((f"{kind}{at}", kind) for at, (_, kind) in enumerate(parts[0].columns))
            return Made(f" UNION {rng.choice(['', 'ALL '])}BY NAME ".join(f"({name})" for name in names), columns)
        operations = [
            "UNION ALL",
            "UNION ALL",
            "UNION",
            "UNION",
            "INTERSECT",
            "EXCEPT",
            "INTERSECT ALL",
            "EXCEPT ALL",
            "UNION DISTINCT",
        ]
        if rng.random() < 0.3:  # which binds closer decides
            texts = [f"({part.sql})" for part in parts]
            joined = texts[0]
            for text in texts[1:]:
                joined = f"{joined} {rng.choice(operations)} {text}"
            return Made(joined, parts[0].columns)
        bare = rng.random() < 0.3 and not any(
            re.search(r"WITH| ORDER BY | LIMIT | OFFSET ", part.sql) for part in parts
        )
        return Made(
            f" {rng.choice(operations)} ".join(part.sql if bare else f"({part.sql})" for part in parts),
            parts[0].columns,
        )
