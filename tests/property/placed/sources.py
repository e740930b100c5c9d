"""What stands in FROM: tables, common table expressions, subqueries, VALUES and table functions, with or without names
for their columns.
"""

from __future__ import annotations

from placed.expressions import Expressions
from placed.parts import Column, Columns, Source
from placed.tables import columns_of

__all__ = ["Sources", "source_of"]


def source_of(sql: str, alias: str, columns: Columns) -> Source:
    """An item of FROM with columns that are reached by its alias."""
    return Source(sql, tuple(Column(f"{alias}.{name}", kind) for name, kind in columns), columns)


class Sources(Expressions):
    """Makes single items of FROM."""

    def item(self, depth: int, outer: tuple[Column, ...]) -> Source:
        """One item of FROM."""
        rng = self.rng
        alias = self.name("x")
        self.room -= 1
        roll = rng.random()
        if roll < 0.06:
            return self._function(alias)
        if roll < 0.1:
            return self._values(alias)
        if depth <= 0 or rng.random() < 0.75:
            return self._table(alias)
        made = self.query(depth - 1, (), None)
        if rng.random() < 0.2:
            return self.renamed(f"({made.sql})", made.columns)
        return source_of(
            rng.choice([f"({made.sql}) {alias}", f"({made.sql}) AS {alias}", f"{alias}: ({made.sql})"]),
            alias,
            made.columns,
        )

    def visible_tables(self) -> list[tuple[str, Columns]]:
        """The tables that no common table expression hides."""
        hidden = {name for name, _ in self.ctes}
        return [(name, columns_of(name)) for name in self.tables if name not in hidden]

    def _table(self, alias: str) -> Source:
        rng = self.rng
        tables = self.visible_tables()
        if self.ctes and rng.random() < 0.5:
            tables = self.ctes
        name, columns = rng.choice([table for table in tables if table[0] in ("orders", "items")] * 2 + tables)
        if rng.random() < 0.08:
            query = f"FROM {name}"
            return self.renamed(
                rng.choice([name, f"({query})", f"(({query}))", f"({query} {self.name('x')})"]), columns
            )
        written = rng.choice([name] * 8 + [name.upper(), f'"{name}"'])
        return source_of(f"{written} {alias}", alias, columns)

    def _values(self, alias: str) -> Source:
        rng = self.rng
        rows = [f"({rng.choice(['-1', '0', '1', 'NULL'])}, {self.constant('s')})" for _ in range(rng.choice([1, 3]))]
        if rng.random() < 0.2:
            rows[0] = rng.choice(["(1, NULL)", "(1, 'a')"])
        values = f"(VALUES {', '.join(rows)})"
        columns = (("i", "i"), ("s", "s"))
        if rng.random() < 0.2:
            return source_of(f"{values} {alias}", alias, (("col0", "i"), ("col1", "s")))
        return source_of(f"{values} {rng.choice(['', 'AS '])}{alias}(i, s)", alias, columns)

    def _function(self, alias: str) -> Source:
        rng = self.rng
        call, own = rng.choice(
            [
                ("range(-1, 3)", "range"),
                ("range(4)", "range"),
                ("generate_series(3)", "generate_series"),
                ("generate_series(-1, 5, 2)", "generate_series"),
                ("unnest([1, 2, NULL, 2])", "unnest"),
            ]
        )
        behind, name = rng.choice([(f"{alias}(k)", "k"), (f"AS {alias}(k)", "k"), (f"AS {alias}", own)])
        return source_of(f"{call} {behind}", alias, ((name, "i"),))

    def renamed(self, sql: str, columns: Columns) -> Source:
        """An item of FROM whose alias gives names to its columns, to all or to the first of them."""
        rng = self.rng
        alias = self.name("x")
        given = [
            self.name("n") if rng.random() < 0.9 else f'"N {self.name("n")}"'
            for _ in columns[: rng.randint(1, len(columns))]
        ]
        named = tuple((given[at] if at < len(given) else name, kind) for at, (name, kind) in enumerate(columns))
        return source_of(f"{sql} {rng.choice(['AS ', 'AS ', ''])}{alias}({', '.join(given)})", alias, named)
