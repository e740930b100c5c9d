"""The shapes of a SELECT: plain, with stars, distinct, aggregates of all rows, groups, windows."""

from __future__ import annotations

from placed.expressions import aliases_in
from placed.parts import Column, Made, Source
from placed.windows import Windows

__all__ = ["Selects"]


class Selects(Windows):
    """Makes SELECTs."""

    def select(self, depth: int, outer: tuple[Column, ...], kinds: str | None) -> Made:
        """A SELECT of any shape."""
        rng = self.rng
        source = self.source(depth, outer)
        where = self.where(source.reach, outer, depth)
        if kinds is None and rng.random() < 0.15 and len({name for name, _ in source.starred}) == len(source.starred):
            return self._starred(source, where)
        kinds = kinds or "".join(
            rng.choice("iiisdmflwht" if rng.random() < 0.5 else "iis") for _ in range(rng.choice([1, 2, 2, 3, 4]))
        )
        shapes = [self._plain] * 4 + [self._grouped] * 4 + [self._total] + [self.windowed] * 2 + [self._distinct]
        return rng.choice(shapes)(source, where, kinds, outer, depth)

    def position(self, at: int) -> str:
        """The number of a column of the SELECT list, in parentheses or not."""
        return self.rng.choice(["{}", "({})", "({})", "(({}))"]).format(at + 1)

    def _starred(self, source: Source, where: str) -> Made:
        """All columns, some of them left out, replaced or renamed; of one item of FROM by its name."""
        rng = self.rng
        columns, qualifier = source.starred, ""
        holder = source.reach[0].text.rpartition(".")
        mine = [column for column in source.reach if column.text.startswith(f"{holder[0]}.")]
        if holder[0] and rng.random() < 0.6:
            columns, qualifier = (
                tuple((column.text.rpartition(".")[2], column.kind) for column in mine),
                f"{holder[0]}.",
            )
        name, kind = rng.choice(columns)
        rest = tuple(column for column in columns if column[0] != name)
        behind = f" FROM {source.sql}{where}"
        changes = ["", "RENAME", "RENAME"]
        if len(columns) > 1:
            changes += ["EXCLUDE", "EXCLUDE RENAME", "COLUMNS"]
        if kind == "i":
            changes += ["REPLACE", "REPLACE", "REPLACE RENAME"] if qualifier else ["REPLACE"]
        added = rng.choice([1, 100, -7])
        other, other_kind = rng.choice(rest) if rest else (name, kind)
        new = self.name("r")
        renamed = tuple((new, kind) if column[0] == name else column for column in columns)
        match rng.choice(changes):
            case "EXCLUDE":
                return Made(
                    f"SELECT {qualifier}* {rng.choice(['EXCLUDE', 'EXCLUDE', 'EXCEPT'])} ({name}){behind}", rest
                )
            case "REPLACE":
                return Made(f"SELECT {qualifier}* REPLACE ({qualifier}{name} + {added} AS {name}){behind}", columns)
            case "RENAME":
                return Made(f"SELECT {qualifier}* RENAME ({name} AS {new}){behind}", renamed)
            case "EXCLUDE RENAME":
                kept = tuple((new, other_kind) if column[0] == other else column for column in rest)
                return Made(f"SELECT {qualifier}* EXCLUDE ({name}) RENAME ({other} AS {new}){behind}", kept)
            case "REPLACE RENAME" if rest:
                moved = tuple((new, other_kind) if column[0] == other else column for column in columns)
                return Made(
                    f"SELECT {qualifier}* REPLACE ({qualifier}{name} + {added} AS {name}) RENAME ({other} AS"
                    f" {new}){behind}",
                    moved,
                )
            case "COLUMNS" if not qualifier:
                listed = rng.choice(
                    [
                        f"COLUMNS(c -> c <> '{name}')",
                        f"COLUMNS(lambda c: c <> '{name}')",
                        f"COLUMNS(* EXCLUDE ({name}))",
                    ]
                )
                return Made(f"SELECT {listed}{behind}", rest)
            case _:
                return Made(f"SELECT {qualifier}*{behind}", columns)

    def _plain(self, source: Source, where: str, kinds: str, outer: tuple[Column, ...], depth: int) -> Made:
        rng = self.rng
        items = []
        for kind in kinds:
            deep = kind == "i" and depth > 0 and rng.random() < 0.12
            if deep:
                items.append((self.scalar(depth - 1, (*outer, *source.reach)), kind))
            elif kind in "isd" and rng.random() < 0.08:
                items.append((self.cast(kind, source.reach), kind))
            else:
                items.append((self.expression(kind, source.reach), kind))
        text, columns = self.items(items)
        named = aliases_in(columns)
        if named and rng.random() < 0.15:
            where = f"{f'{where} AND' if where else ' WHERE'} {self.about(*rng.choice(named))}"
        if rng.random() < 0.04:
            return Made(f"FROM {source.sql} SELECT {text}{where}", columns)
        return Made(f"SELECT {text} FROM {source.sql}{where}", columns)

    def _distinct(self, source: Source, where: str, kinds: str, outer: tuple[Column, ...], depth: int) -> Made:
        rng = self.rng
        kinds = kinds.replace("l", "i")
        text, columns = self.items([(self.expression(kind, source.reach), kind) for kind in kinds])
        if rng.random() < 0.5:
            return Made(f"SELECT DISTINCT {text} FROM {source.sql}{where}", columns)
        keys = [
            self.position(0) if rng.random() < 0.3 else self.column(source.reach).text
            for _ in range(rng.choice([1, 1, 2]))
        ]
        order = [f"{key}{rng.choice(['', '', ' DESC', ' NULLS FIRST'])}" for key in keys] + [
            self.position(at) for at in range(len(kinds))
        ]
        return Made(
            f"SELECT DISTINCT ON ({', '.join(keys)}) {text} FROM {source.sql}{where} ORDER BY {', '.join(order)}",
            columns,
        )

    def _total(self, source: Source, where: str, kinds: str, outer: tuple[Column, ...], depth: int) -> Made:
        rng = self.rng
        items = [(self.aggregate(kind, source.reach), kind) for kind in kinds]
        if depth > 0 and "i" in kinds and rng.random() < 0.15:
            at = kinds.index("i")
            items[at] = (f"max({self.scalar(depth - 1, source.reach)})", "i")
        text, columns = self.items(items)
        having = rng.choice(["", "", "", " HAVING count(*) > 1", f" HAVING {self.aggregate('i', source.reach)} > 0"])
        if depth > 0 and rng.random() < 0.1:
            having = f" HAVING {self.aggregate('i', source.reach)} >= {self.scalar(depth - 1, ())}"
        return Made(f"SELECT {text} FROM {source.sql}{where}{having}", columns)

    def _grouped(self, source: Source, where: str, kinds: str, outer: tuple[Column, ...], depth: int) -> Made:
        rng = self.rng
        keys = [self.group_key(source.reach) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        texts = [key.text for key in keys]
        by = rng.choice(["plain"] * 5 + ["ALL", "ordinals", "ROLLUP", "CUBE", "SETS", "mixed"])
        sets = by in ("ROLLUP", "CUBE", "SETS", "mixed")
        by_position = sets and rng.random() < 0.5
        items: list[tuple[str, str]] = []
        for kind in kinds:
            alike = [key.text for key in keys if key.kind == kind]
            if alike and rng.random() < 0.6:
                items.append((rng.choice(alike), kind))
            elif kind == "i" and sets and rng.random() < 0.3:
                items.append(
                    (
                        (
                            f"{rng.choice(['grouping', 'grouping_id'])}"
                            f"({', '.join(rng.sample(texts, rng.choice([1, len(texts)])))})"
                        ),
                        kind,
                    )
                )
            elif kind == "i" and rng.random() < 0.12:
                call = rng.choice(["rank()", "count(*)", "max(count(*))", "sum(count(*))"])
                text = f"{call} OVER ({self.partition(keys)} ORDER BY count(*), {texts[0]})"
                items.append((f"({text})::BIGINT" if call.startswith("sum") else text, kind))
            elif kind == "i" and depth > 0 and not sets and rng.random() < 0.1:
                items.append((self.scalar(depth - 1, tuple(keys)), kind))
            else:
                items.append((self.aggregate(kind, source.reach), kind))
        if by == "ordinals" or by_position:
            items[:0] = [(key.text, key.kind) for key in keys]
            items = items[: max(len(kinds), len(keys))] if len(items) == len(kinds) else items
        named = [self.position(at) for at in range(len(keys))] if by_position else texts
        head = {
            "plain": ", ".join(texts),
            "ALL": "ALL",
            "ordinals": ", ".join(map(self.position, range(len(keys)))),
            "ROLLUP": f"ROLLUP ({', '.join(named)})",
            "CUBE": f"CUBE ({', '.join(named)})",
            "SETS": (
                f"GROUPING SETS (({', '.join(named)}), ({named[0]}),"
                f" {rng.choice(['()', f'ROLLUP ({named[-1]})', named[-1]])})"
            ),
            "mixed": f"{named[0]}, {rng.choice(['ROLLUP', 'CUBE'])} ({', '.join(named[1:] or named)})",
        }[by]
        text, columns = self.items(items)
        having = ""
        if rng.random() < 0.35:
            choices = [
                *(self.about(*item) for item in aliases_in(columns)[:1]),
                f"count(*) {rng.choice(['>', '=', '<'])} {rng.choice([1, 2])}",
                f"{self.aggregate('i', source.reach)} >= 0",
                self.predicate(tuple(keys), (), 0),
            ]
            if depth > 0 and not sets:
                choices.append(self.subquery(tuple(keys), outer, depth - 1))
            having = f" HAVING {rng.choice(choices)}"
        if (by == "ordinals" or by_position) and len(columns) > len(kinds):
            wanted = columns[len(keys) :]
            grouped = f"SELECT {text} FROM {source.sql}{where} GROUP BY {head}{having}"
            return Made(f"SELECT {', '.join(name for name, _ in wanted)} FROM ({grouped})", wanted)
        return Made(f"SELECT {text} FROM {source.sql}{where} GROUP BY {head}{having}", columns)
