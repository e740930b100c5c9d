"""Window functions, their frames and names."""

from __future__ import annotations

from collections.abc import Sequence

from placed.joins import Joins
from placed.parts import Column, Made, Source

__all__ = ["Windows"]

_ROWS = [
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
]
_PEERS = [
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP",
    "GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE TIES",
]


class Windows(Joins):
    """Makes SELECTs with window functions; their values do not depend on the order of equal rows."""

    def partition(self, reach: Sequence[Column]) -> str:
        """PARTITION BY, or nothing."""
        return self.rng.choice(["", *(f"PARTITION BY {self.group_key(reach).text}" for _ in range(2))])

    def windowed(self, source: Source, where: str, kinds: str, outer: tuple[Column, ...], depth: int) -> Made:
        """A SELECT of values over windows."""
        rng = self.rng
        integer = self.column(source.reach, "i").text
        partition = self.partition(source.reach)
        total = ", ".join(column.text for column in source.reach)
        by_one = f"ORDER BY {integer}{rng.choice(['', '', ' DESC', ' NULLS FIRST'])}"
        order = rng.choice(["", by_one, f"ORDER BY {total}"])
        over = f"{partition} {order}".strip()
        is_total = order.endswith(total)
        frames = [""] if not order else ["", "", *_ROWS] if is_total else ["", "", *_PEERS]
        frame = rng.choice(frames)
        framed = f"{over} {frame}".strip()
        form = rng.choice(["in place", "in place", "named", "based"])
        window = ""
        use = f"({framed})"
        if form == "named":
            use, window = "w", f" WINDOW w AS ({framed})"
        elif form == "based" and order:
            use, window = f"(w {order} {frame})", f" WINDOW w AS ({partition})"
        text = self.column(source.reach, "i").text
        condition = f" FILTER (WHERE {self.predicate(source.reach, (), 0)})" if rng.random() < 0.2 else ""
        calls = [
            f"count(*){condition} OVER {use}",
            f"(sum({text}){condition} OVER {use})::BIGINT",
            f"max({text}) OVER {use}",
            f"count({text}) OVER {use}",
        ]
        if order:
            calls += [f"rank() OVER {use}", f"dense_rank() OVER {use}", f"(cume_dist() OVER {use} * 60)::BIGINT"]
        if is_total:
            calls += [
                f"row_number() OVER {use}",
                f"lag({text}) OVER {use}",
                f"lead({text}, 2, -5) OVER {use}",
                f"ntile(2) OVER {use}",
            ]
            calls += [
                f"first_value({text}) OVER {use}",
                f"last_value({text} IGNORE NULLS) OVER {use}",
                f"nth_value({text}, 2) OVER {use}",
            ]
        items = [(rng.choice(calls) if kind == "i" else self.expression(kind, source.reach), kind) for kind in kinds]
        listed, columns = self.items(items)
        qualify = (
            f" QUALIFY {rng.choice(calls)} {rng.choice(['<=', '>'])} {rng.choice([1, 2])}" if rng.random() < 0.4 else ""
        )
        named = [name for name, kind in columns if kind == "i" and name.startswith("c") and name != "c"]
        if not qualify and named and rng.random() < 0.3:
            qualify = f" QUALIFY {rng.choice(named)} {rng.choice(['<=', '>'])} {rng.choice([1, 2])}"
        return Made(f"SELECT {listed} FROM {source.sql}{where}{window}{qualify}", columns)
