"""Statements that change one of the tables, with queries of :mod:`statements` in them.

Where the dialect leaves open which of several rows decides, the statements have one: what is written is grouped by the
key.
"""

from __future__ import annotations

from placed.parts import Column
from placed.sources import source_of
from placed.statements import Placeable
from placed.tables import columns_of

__all__ = ["Changes"]


class Changes(Placeable):
    """Makes one change.

    Attributes:
        returns: Whether it has RETURNING, and rows for a result in place of a count.
    """

    returns = False

    def change(self) -> tuple[str, str]:
        """The table that is changed, and the statement; ``params`` are its parameters then."""
        rng = self.rng
        name = rng.choice([name for name in self.tables if name != "timed"])
        sql = rng.choice(
            [self._insert, self._insert, self._update, self._update_from, self._delete, self._delete_using, self._merge]
        )(name)
        self.returns = rng.random() < 0.25
        return name, self.finished(sql + self._returning(name, sql) if self.returns else sql)

    def _returning(self, name: str, sql: str) -> str:
        kind = self.rng.choice("is")
        action = "merge_action, " if sql.startswith("MERGE") else ""
        columns = ", ".join(f"{name}.{column}" for column in "kjis")
        return f" RETURNING {action}{columns}, {self.expression(kind, self._reach(name))} AS made"

    def _rows(self, columns: str) -> str:
        """Rows for some columns, one for each key: those of ``k`` and ``j`` first."""
        rng = self.rng
        made = self.query(rng.choice([0, 1, 2]), (), "ii" + columns)
        names = [f"{name} AS c{at}" for at, (name, _) in enumerate(made.columns)]
        renamed = (
            f"SELECT {', '.join(names)} FROM ({made.sql}) q"
            if len({name for name, _ in made.columns}) == len(names)
            else None
        )
        inner = renamed or f"SELECT * FROM ({made.sql}) AS q({', '.join(f'c{at}' for at in range(len(names)))})"
        values = ", ".join(f"max(c{at + 2}) AS v{at}" for at in range(len(columns)))
        keyed = "((c0 % 5) + 0)::INTEGER AS k, (abs(c1) % 3)::INTEGER AS j"
        where = "WHERE c0 BETWEEN -9 AND 9 AND c1 BETWEEN -9 AND 9"
        return f"SELECT {keyed}, {values} FROM ({inner}) r {where} GROUP BY ALL"

    def _insert(self, name: str) -> str:
        rng = self.rng
        columns = "".join(column for column, _ in columns_of(name) if column not in "kj")
        listed = rng.sample(columns, rng.randint(1, len(columns)))
        rows = self._rows("".join(listed))
        how = rng.choice(["INSERT OR REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT", "INSERT"])
        conflict = ""
        if how == "INSERT":
            first = listed[0]
            conflict = rng.choice(
                [" ON CONFLICT DO NOTHING"]
                + [f" ON CONFLICT (k, j) DO UPDATE SET {first} = excluded.{first}"] * 2
                + [f" ON CONFLICT DO UPDATE SET {first} = excluded.{first} WHERE {name}.i IS NULL OR excluded.k > 0"]
            )
        return f"{how} INTO {name} (k, j, {', '.join(listed)}) {rows}{conflict}"

    def _reach(self, name: str) -> tuple[Column, ...]:
        return source_of("", name, columns_of(name)).reach

    def _update(self, name: str) -> str:
        rng = self.rng
        reach = self._reach(name)
        column = rng.choice([column for column, _ in columns_of(name) if column not in "kj"])
        value = self.scalar(1, reach) if column == "i" and rng.random() < 0.4 else self.expression(column, reach)
        also = f", s = {self.expression('s', reach)}" if column != "s" and rng.random() < 0.3 else ""
        return f"UPDATE {name} SET {column} = {value}{also}{self.where(reach, (), rng.choice([0, 1, 1]))}"

    def _update_from(self, name: str) -> str:
        rng = self.rng
        rows = self._rows("is")
        alias = self.name("x")
        joined = f"{name}.k = {alias}.k AND {name}.j = {alias}.j"
        more = f" AND {self.predicate(self._reach(name), (), 0)}" if rng.random() < 0.4 else ""
        value = rng.choice([f"{alias}.v0", f"{name}.i + {alias}.v0", f"coalesce({alias}.v0, {name}.k)"])
        return f"UPDATE {name} SET i = {value}, s = {alias}.v1 FROM ({rows}) {alias} WHERE {joined}{more}"

    def _delete(self, name: str) -> str:
        reach = self._reach(name)
        return (
            f"DELETE FROM {name} WHERE {self.predicate(reach, (), 1)} AND {self.key(reach, 'i').text} ="
            f" {self.constant('i')}"
        )

    def _delete_using(self, name: str) -> str:
        alias = self.name("x")
        rows = self._rows("i")
        more = self.predicate(self._reach(name), (), 0)
        return (
            f"DELETE FROM {name} USING ({rows}) {alias} WHERE {name}.k = {alias}.k AND {alias}.v0 > {name}.j AND {more}"
        )

    def _merge(self, name: str) -> str:
        rng = self.rng
        rows = self._rows("is")
        alias = self.name("x")
        on = f"{name}.k = {alias}.k AND {name}.j = {alias}.j"
        matched = rng.choice(
            [
                f"UPDATE SET i = {alias}.v0",
                "DELETE",
                f"UPDATE SET s = {alias}.v1, i = {name}.i + 1",
                "DO NOTHING",
                "UPDATE SET i = NULL",
            ]
        )
        condition = rng.choice(["", "", f" AND {alias}.v0 > 0", f" AND {self.predicate(self._reach(name), (), 0)}"])
        absent = rng.choice(
            ["", f" WHEN NOT MATCHED THEN INSERT (k, j, i, s) VALUES ({alias}.k, {alias}.j, {alias}.v0, {alias}.v1)"]
            * 2
        )
        by_source = rng.choice(["", "", "", f" WHEN NOT MATCHED BY SOURCE AND {name}.i = 1 THEN DELETE"])
        return (
            f"MERGE INTO {name} USING ({rows}) {alias} ON {on} WHEN MATCHED{condition} THEN"
            f" {matched}{absent}{by_source}"
        )
