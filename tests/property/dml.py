"""Random statements that change rows, for two tables: ``t (k, j, v, s, PRIMARY KEY (k, j))`` and
``u (id, k, w, PRIMARY KEY (id))``. Columns may have a DEFAULT, and the first table a CHECK.

Where the dialect leaves open which of several rows decides, the statements have one: sources are joined by their key.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["Statements"]

KEYS = range(8)
VALUES = ["NULL", "0", "1", "-3", "7"]
TEXTS = ["'a'", "'b'", "'c'", "'c'", "DEFAULT"]


class Statements:
    """A source of statements.

    Args:
        rng: Where chance comes from.
        t: The name of the first table.
        u: The name of the second.
    """

    def __init__(self, rng: random.Random, t: str, u: str) -> None:
        self.rng = rng
        self.t = t
        self.u = u
        self.params: list[Any] = []

    def statement(self) -> tuple[str, list[Any]]:
        """A statement and its parameters."""
        self.params = []
        makers = [
            self.insert,
            self.insert,
            self.insert_query,
            self.update,
            self.update,
            self.update_key,
            self.delete,
            self.merge,
            self.merge,
            self.change_u,
        ]
        sql = self.rng.choice(makers)()
        return sql, self.params

    def value(self, text: str) -> str:
        """A literal, or a parameter with its value."""
        if self.rng.random() < 0.7 or text in ("NULL", "DEFAULT"):
            return text
        self.params.append(int(text))
        return f"${len(self.params)}"

    def rows(self, count: int) -> str:
        rng = self.rng
        return ", ".join(
            f"({self.value(str(rng.choice(KEYS)))}, {rng.choice([1, 2])},"
            f" {self.value(rng.choice([*VALUES, 'DEFAULT']))}, {rng.choice(TEXTS)})"
            for _ in range(count)
        )

    def few_columns(self) -> str:
        """Rows that do not name all columns, behind INSERT [OR ...] INTO."""
        rng = self.rng
        names = rng.choice(["k, s", "s, k, j", "v, k", "k, j"])
        columns = {
            "k": lambda: self.value(str(rng.choice(KEYS))),
            "j": lambda: rng.choice(["1", "2", "DEFAULT"]),
            "v": lambda: self.value(rng.choice(VALUES)),
            "s": lambda: rng.choice(TEXTS),
        }
        rows = [", ".join(columns[name]() for name in names.split(", ")) for _ in range(rng.choice([1, 1, 2, 4]))]
        return f"{self.t} ({names}) VALUES ({'), ('.join(rows)})"

    def conflict(self) -> str:
        rng, t = self.rng, self.t
        target = rng.choice(["", " (k, j)"])
        condition = rng.choice(
            ["", f" WHERE {t}.v > 0 OR {t}.v IS NULL", " WHERE excluded.v IS NOT NULL", " WHERE s <> 'c'"]
        )
        assigned = rng.choice(
            [
                "v = excluded.v",
                f"v = v + excluded.v, s = {t}.s || excluded.s",
                "s = 'x'",
                "v = DEFAULT, s = excluded.s",
                "(v, s) = (1, s)",
            ]
        )
        return rng.choice(
            [f" ON CONFLICT{target} DO NOTHING", f" ON CONFLICT{target} DO UPDATE SET {assigned}{condition}"]
        )

    def returning(self) -> str:
        return self.rng.choice(["", "", "", " RETURNING *", " RETURNING v, k + 1 AS next", f" RETURNING {self.t}.s"])

    def insert(self) -> str:
        rng = self.rng
        rows = self.rows(rng.choice([1, 1, 2, 5]))
        form = rng.choice(
            [
                "INSERT INTO {t} VALUES {rows}",
                "INSERT OR REPLACE INTO {t} VALUES {rows}",
                "INSERT OR IGNORE INTO {t} VALUES {rows}",
                "",
                "few",
            ]
        )
        if form == "few":
            self.params = []
            word = rng.choice(["", "", " OR IGNORE", " OR REPLACE"])
            return f"INSERT{word} INTO {self.few_columns()}{'' if word else self.conflict()}{self.returning()}"
        if form:
            return form.format(t=self.t, rows=rows) + self.returning()
        return f"INSERT INTO {self.t} VALUES {rows}{self.conflict()}{self.returning()}"

    def insert_query(self) -> str:
        rng = self.rng
        # Of rows with one key the first counts, and only an order says which that is.
        source = rng.choice(
            [
                f"SELECT id, 1, w, 'q' FROM {self.u}",
                f"SELECT k, 2, max(w), 'm' FROM {self.u} WHERE k IS NOT NULL GROUP BY k",
            ]
        )
        if rng.random() < 0.2:
            some = rng.choice(["(k, s) SELECT id, 'p'", "(k, j) SELECT id, 2", "(v, k, j) SELECT w, id, 1"])
            return f"INSERT INTO {self.t} {some} FROM {self.u}{rng.choice(['', self.conflict()])}{self.returning()}"
        if rng.random() < 0.2:
            return f"INSERT OR REPLACE INTO {self.t} (k, j, s) SELECT id, 1, 'p' FROM {self.u}{self.returning()}"
        return f"INSERT INTO {self.t} {source}{rng.choice(['', self.conflict(), self.conflict()])}{self.returning()}"

    def condition(self) -> str:
        rng, t, u = self.rng, self.t, self.u
        return rng.choice(
            [
                f"{t}.k = {self.value(str(rng.choice(KEYS)))}",
                f"{t}.k = {self.value(str(rng.choice(KEYS)))} AND j = 1",
                f"{t}.k IN (1, 2, {self.value('7')})",
                f"v > {self.value('0')}",
                "v IS NULL",
                f"v < (SELECT avg(w) FROM {u})",
                f"{t}.k IN (SELECT k FROM {u})",
                f"{t}.k NOT IN (SELECT k FROM {u} WHERE k IS NOT NULL)",
                f"EXISTS (SELECT 1 FROM {u} WHERE {u}.k = {t}.k AND {u}.w > {t}.v)",
                f"v = (SELECT max(v) FROM {t})",
                "true",
            ]
        )

    def update(self) -> str:
        rng, t, u = self.rng, self.t, self.u
        assigned = rng.choice(
            [
                "v = v + 1",
                f"v = {self.value('7')}, s = s || 'u'",
                "(v, s) = (j, 'z')",
                "v = DEFAULT",
                "s = DEFAULT, v = v - 1",
                f"v = (SELECT max(w) FROM {u} WHERE {u}.k = {t}.k)",
            ]
        )
        if rng.random() < 0.5:
            return f"UPDATE {t} SET {assigned} WHERE {self.condition()}{self.returning()}"
        assigned = rng.choice(["v = w", "v = x.w + v, s = 'f'", f"s = s || x.id, v = {t}.k"])
        joined = rng.choice(
            [f"{t}.k = x.id", f"{t}.k = x.id AND x.w > {self.value('0')}", f"x.id = {t}.k AND {t}.j = 1"]
        )
        source = rng.choice([f"{u} AS x", f"(SELECT * FROM {u} WHERE w IS NOT NULL) x"])
        return f"UPDATE {t} SET {assigned} FROM {source} WHERE {joined}"

    def update_key(self) -> str:
        assigned = self.rng.choice(
            ["k = k + 10", "k = 7 - k", "j = 3 - j", "k = k + 1", f"k = {self.value('7')}", "j = j + 1, v = k"]
        )
        return f"UPDATE {self.t} SET {assigned} WHERE {self.condition()}{self.returning()}"

    def delete(self) -> str:
        rng, t, u = self.rng, self.t, self.u
        if rng.random() < 0.6:
            return f"DELETE FROM {t} WHERE {self.condition()} AND j = {rng.choice([1, 2])}{self.returning()}"
        using = f"DELETE FROM {t} USING {u} x WHERE {t}.k = x.k AND x.w > {self.value('0')}"
        return rng.choice(
            [using, f"WITH few AS (SELECT id FROM {u} WHERE w < 2) DELETE FROM {t} WHERE k IN (SELECT id FROM few)"]
        )

    def merge(self) -> str:
        rng, t, u = self.rng, self.t, self.u
        source = rng.choice(
            [
                f"{u} AS x",
                f"(SELECT * FROM {u} WHERE w > {self.value('0')}) AS x",
                f"(SELECT id, count(*) AS w FROM {u} GROUP BY id) x",
            ]
        )
        some = ["", " AND v > 0", " AND x.w > 0", f" AND {t}.j = 1"]
        matched = [
            f" WHEN MATCHED{rng.choice(some)} THEN"
            f" {rng.choice(['UPDATE SET v = x.w', 'DELETE', 'DO NOTHING', 'UPDATE SET s = s || x.id, v = w'])}"
            for _ in range(rng.choice([0, 1, 2]))
        ]
        absent = rng.choice(
            [
                "",
                " WHEN NOT MATCHED THEN INSERT VALUES (x.id, 1, w, 'i')",
                " WHEN NOT MATCHED AND w > 0 THEN INSERT (s, k, j) VALUES ('i', id, 2)",
                " WHEN NOT MATCHED AND w > 0 THEN INSERT (k, v, j) VALUES (id, DEFAULT, 1)",
                " WHEN NOT MATCHED THEN INSERT (k, s) VALUES (id, 'd')",
            ]
        )
        by_source = rng.choice(
            [
                "",
                "",
                " WHEN NOT MATCHED BY SOURCE AND v < 0 THEN DELETE",
                " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -1",
            ]
        )
        clauses = "".join(matched) + absent + by_source
        returning = rng.choice(["", "", " RETURNING merge_action, *"])
        return f"MERGE INTO {t} USING {source} ON {t}.k = x.id{clauses or ' WHEN MATCHED THEN DELETE'}{returning}"

    def change_u(self) -> str:
        rng = self.rng
        row = f"({rng.choice(KEYS)}, {rng.choice([*map(str, KEYS), 'NULL'])}, {rng.choice(VALUES)})"
        return rng.choice(
            [f"INSERT OR REPLACE INTO {self.u} VALUES {row}", f"DELETE FROM {self.u} WHERE id = {rng.choice(KEYS)}"]
        )
