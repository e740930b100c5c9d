"""How the items of FROM are joined."""

from __future__ import annotations

from placed.parts import Column, Made, Source
from placed.sources import Sources, source_of

__all__ = ["Joins"]

_ONES = ["SEMI JOIN", "ANTI JOIN"]


class Joins(Sources):
    """Makes FROM clauses."""

    def source(self, depth: int, outer: tuple[Column, ...]) -> Source:
        """Up to four items of FROM, joined."""
        source = self.item(depth, outer)
        for _ in range(self.rng.choice([0, 1, 1, 1, 2, 2, 3] if depth > 0 else [0, 0, 1])):
            # Products of products would take all memory.
            source = self._joined(source, depth, outer) if self.room > 0 else source
        return source

    def _joined(self, left: Source, depth: int, outer: tuple[Column, ...]) -> Source:
        rng = self.rng
        kind = rng.choice(
            ["JOIN"] * 5
            + ["INNER JOIN", "LEFT OUTER JOIN"]
            + ["LEFT JOIN"] * 3
            + ["RIGHT JOIN", "FULL JOIN", *_ONES] * 2
            + [",", "CROSS JOIN", "LATERAL", "USING", "USING", "NATURAL", "ASOF", "UNNEST"]
        )
        if kind == "UNNEST":
            return self._unnested(left)
        if kind == "LATERAL":
            return self._lateral(left, depth, outer)
        right = self.item(depth, outer)
        if depth > 1 and rng.random() < 0.1 and not right.sql.startswith("unnest("):  # refused: docs/sql.md
            right = self._joined(right, 0, outer)
            is_named = rng.random() < 0.6 and len({name for name, _ in right.starred}) == len(right.starred)
            right = (
                self.renamed(f"({right.sql})", right.starred)
                if is_named
                else Source(f"({right.sql})", right.reach, right.starred)
            )
        both = (*left.reach, *right.reach), (*left.starred, *right.starred)
        match kind:
            case "," | "CROSS JOIN":
                return Source(f"{left.sql} {kind} {right.sql}", *both)
            case "USING" | "NATURAL":
                return self._merged(kind, left, right)
            case "ASOF" if {"k", "j"} <= {name for name, _ in right.starred} and right.sql.split(" ")[0] in self.tables:
                return self._as_of(left, right)
            case "ASOF":
                kind = "JOIN"
        on = self._on(left.reach, right.reach, outer, depth)
        if kind in _ONES:
            return Source(f"{left.sql} {kind} {right.sql} ON {on}", left.reach, left.starred)
        return Source(f"{left.sql} {kind} {right.sql} ON {on}", *both)

    def _as_of(self, left: Source, right: Source) -> Source:
        rng = self.rng
        both = (*left.reach, *right.reach), (*left.starred, *right.starred)
        alias = right.reach[0].text.rpartition(".")[0]
        how = rng.choice(["ASOF JOIN", "ASOF LEFT JOIN"])
        left_key, value = self.key(left.reach, "i").text, self.column(left.reach, "i").text
        # DuckDB finds the nearest row before it looks at what stands in front of a comma: of ties any row is an answer.
        if {text.rpartition(".")[0] for text in (left_key, value)} != {left.reach[-1].text.rpartition(".")[0]}:
            return Source(f"{left.sql}, {right.sql}", *both)
        compared = rng.choice(
            [f"{value} >= {alias}.j", f"{value} > {alias}.j", f"{value} <= {alias}.j", f"{alias}.j < {value}"]
        )
        return Source(f"{left.sql} {how} {right.sql} ON {left_key} = {alias}.k AND {compared}", *both)

    def _unnested(self, left: Source) -> Source:
        rng = self.rng
        alias = self.name("x")
        elements = f"[{self.column(left.reach, 'i').text}, {self.column(left.reach, 'i').text}]"
        column = source_of("", alias, (("i", "i"),))
        call = rng.choice(
            [
                f", unnest({elements}) {alias}(i)",
                f", unnest({elements}) AS {alias}(i)",
                f" CROSS JOIN unnest({elements}) AS {alias}(i)",
                f", LATERAL (SELECT unnest({elements})) AS {alias}(i)",
                f", (SELECT unnest({elements}) AS i) {alias}",
            ]
        )
        return Source(f"{left.sql}{call}", (*left.reach, *column.reach), (*left.starred, *column.starred))

    def _lateral(self, left: Source, depth: int, outer: tuple[Column, ...]) -> Source:
        rng = self.rng
        alias = self.name("x")
        made = (
            self.query(depth - 1, (*outer, *left.reach), None)
            if rng.random() < 0.5
            else self._correlated(left.reach, outer)
        )
        columns = made.columns
        named = alias
        if rng.random() < 0.15:
            columns = tuple((self.name("n"), kind) for _, kind in columns)
            named = f"AS {alias}({', '.join(name for name, _ in columns)})"
        right = source_of("", alias, columns)
        how, behind = rng.choice(
            [
                (",", ""),
                (", LATERAL", ""),
                ("LEFT JOIN LATERAL", " ON TRUE"),
                ("JOIN LATERAL", " ON TRUE"),
                ("CROSS JOIN LATERAL", ""),
            ]
        )
        return Source(
            f"{left.sql} {how} ({made.sql}) {named}{behind}",
            (*left.reach, *right.reach),
            (*left.starred, *right.starred),
        )

    def _correlated(self, around: tuple[Column, ...], outer: tuple[Column, ...]) -> Made:
        """A query of the rows that equal the rows around it, perhaps the first of them only."""
        item = self.item(0, outer)
        ours, theirs = self.key(item.reach, "i").text, self.key(around, "i").text
        column = self.column(item.reach, "i").text
        tail = self.rng.choice(["", " ORDER BY ALL LIMIT 1", " ORDER BY ALL LIMIT 2"])
        value = self.rng.choice([column, f"max({column})", f"{column} + {theirs}"])
        return Made(f"SELECT {value} AS c FROM {item.sql} WHERE {ours} = {theirs}{tail}", (("c", "i"),))

    def _merged(self, kind: str, left: Source, right: Source) -> Source:
        rng = self.rng
        ours, theirs = [name for name, _ in left.starred], dict(right.starred)
        shared = [
            (name, kind)
            for name, kind in left.starred
            if ours.count(name) == 1 and theirs.get(name) == kind and kind != "l"
        ]
        how = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", *_ONES])
        if not shared:
            return Source(f"{left.sql}, {right.sql}", (*left.reach, *right.reach), (*left.starred, *right.starred))
        only = how in _ONES
        natural = kind == "NATURAL" and not only
        used = dict(shared) if natural else dict(rng.sample(shared, rng.choice([1, 1, min(2, len(shared))])))
        if not natural and "k" in dict(shared) and rng.random() < 0.6:
            used = {"k": "i"}
        sql = (
            f"{left.sql} NATURAL {how} {right.sql}"
            if natural
            else f"{left.sql} {how} {right.sql} USING ({', '.join(used)})"
        )
        if only:
            return Source(sql, left.reach, left.starred)
        merged = tuple(Column(name, kind) for name, kind in used.items())
        return Source(
            sql,
            (*left.reach, *right.reach, *merged),
            (*left.starred, *(column for column in right.starred if column[0] not in used)),
        )

    def _on(self, left: tuple[Column, ...], right: tuple[Column, ...], outer: tuple[Column, ...], depth: int) -> str:
        rng = self.rng
        ours = (
            self.key(left, "i")
            if rng.random() < 0.8
            else self.column([column for column in left if column.kind != "l"] or left)
        )
        theirs = self.key(right, ours.kind)
        parts = [f"{ours.text} {rng.choice(['='] * 9 + ['<', 'IS NOT DISTINCT FROM'])} {theirs.text}"]
        if rng.random() < 0.25:
            ours = self.column(left, "i")
            parts.append(f"{ours.text} {rng.choice(['=', '=', '<=', '<>'])} {self.column(right, 'i').text}")
        if rng.random() < 0.3:
            parts.append(self.predicate(rng.choice([left, right]), outer, depth - 1 if rng.random() < 0.15 else 0))
        return f" {'AND' if rng.random() < 0.96 else 'OR'} ".join(parts)
