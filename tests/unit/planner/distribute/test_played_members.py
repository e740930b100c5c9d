"""The stages of queries, run at three played members, together answer as the queries do.

Each table is divided by the hash of its first column, and so are rows that are routed to it; tables of few columns are
replicated. A stage at the members runs once for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from bound_statements import FILES, bound, queries, rows_of

from secateur.engine.exchange import can_route
from secateur.partitioning.types import parse_type
from secateur.planner import CostModel, Estimate
from secateur.planner.binding import BoundPlan, normalised
from secateur.planner.distribute import Distributor, Draft, Exchanges, NotDivided
from secateur.planner.tree import BoundText, columns_read
from secateur.planner.tree.columns import expressions_of, relations_in

MEMBERS = 3
# Rows are left out, computed first and sent once each wherever that is right.
_REDUCED: Any = {
    "semi_join_share_max": 1,
    "semi_join_saved_bytes_min": -1,
    "materialized_share_max": 1,
    "distinct_share_max": 1,
}
MODELS = {
    "broadcast": CostModel(routed_bytes_min=1e12, shuffled_bytes_min=1e12),
    "routed": CostModel(routed_bytes_min=0, shuffled_bytes_min=1e12, **_REDUCED),
    "shuffled": CostModel(routed_bytes_min=1e12, shuffled_bytes_min=0, shuffle_share=0, **_REDUCED),
}
# What each evaluation answers anew, and clocks, which a planner takes out of a statement before.
_WITHOUT_QUERIES = ("describe", "information_schema", "insert_on_conflict", "merge", "update_and_delete_with_others")
_VOLATILE = ("random()", "uuid", "now()", "today", "current_", "localtime", "sleep_ms")


class PlayedMembers(Exchanges):
    """Runs each stage as it is added."""

    def __init__(self, duck: Any, plan: BoundPlan, names: Sequence[str]) -> None:
        self._duck = duck
        columns = {name: self._columns(name) for name in names}
        super().__init__(plan, columns, {name: name for name in names}, self._describe)
        self.replicated = {name for name in names if len(columns[name]) <= 2}
        for name in set(names) - self.replicated:
            key = next(iter(columns[name]))
            for member in range(MEMBERS):
                duck.execute(
                    f'CREATE OR REPLACE TEMP VIEW "{name}__{member}" AS SELECT * FROM "{name}"'
                    f' WHERE hash("{key}"::VARCHAR) % {MEMBERS} = {member}'
                )

    def scan(self, name: str) -> Any:
        key = () if name in self.replicated else (next(iter(self.schemas[name])),)
        scheme = SimpleNamespace(columns=key, affinity_group=lambda: "group")
        table = SimpleNamespace(replicated=name in self.replicated, scheme=scheme)
        return SimpleNamespace(table=table, is_fetched=False)

    def estimate(self, name: str) -> Estimate:
        return Estimate(1e6, 1e6, 1e4, 1.0, dict.fromkeys(self.schemas[name], 10))

    def add(self, placed: Any, title: str | None = None, *, is_answer: bool = False) -> Draft:
        draft = super().add(placed, title, is_answer=is_answer)
        draft.sql = re.sub(r"\bx(\d+) AS ", r'"x\1" AS ', draft.sql)
        return draft

    def run(self, draft: Draft, index: int) -> None:
        texts = [draft.sql] if draft.at_coordinator else [self._at(draft.sql, member) for member in range(MEMBERS)]
        self._duck.execute(
            f'CREATE OR REPLACE TEMP TABLE "x{index}" AS ' + " UNION ALL ".join(f"({text})" for text in texts)
        )

    def _at(self, sql: str, member: int) -> str:
        for name in set(self.schemas) - self.replicated:
            sql = sql.replace(f'"{name}" AS ', f'"{name}__{member}" AS ')
        for index, draft in enumerate(self.drafts):
            if draft.route is not None:
                types = dict(draft.columns)
                assert all(can_route(parse_type(types[column]).arrow) for column in draft.route.columns)
                key = " || '|' || ".join(f'"{column}"::VARCHAR' for column in draft.route.columns)
                mine = f'(SELECT * FROM "x{index}" WHERE coalesce(hash({key}), 0) % {MEMBERS} = {member})'
                sql = sql.replace(f'"x{index}" AS ', f"{mine} AS ")
        return sql

    def _columns(self, name: str) -> dict[str, str]:
        rows = self._duck.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
        return dict(rows)

    def _describe(self, sql: str, schemas: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        for index, draft in enumerate(self.drafts):
            if f"x{index}" in schemas and draft.columns:
                self.run(draft, index)
        relation = self._duck.sql(sql)
        return tuple(zip(relation.columns, map(str, relation.types), strict=True))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("model", "is_large"),
    [
        pytest.param("routed", False, id="routed"),
        pytest.param("shuffled", False, marks=pytest.mark.sampled(one_in=2), id="shuffled"),
        pytest.param("broadcast", False, marks=pytest.mark.slow, id="broadcast"),
        pytest.param("routed", True, marks=pytest.mark.slow, id="routed, and sorted by members"),
        pytest.param("shuffled", True, marks=pytest.mark.slow, id="shuffled, and sorted by members"),
    ],
)
def test_stages_answer_as_the_query(path: Path, model: str, is_large: bool) -> None:
    compared = 0
    for duck, sql in queries(path):
        plan = bound(duck, sql)
        if plan is None or any(word in sql for word in _VOLATILE):
            continue
        root = normalised(plan)
        names = sorted({name for name, _ in columns_read(root)})
        written = (one for relation in relations_in(plan) for one in expressions_of(relation))
        played = PlayedMembers(duck, BoundPlan(plan, BoundText.of(sql, frozenset(), written)), names)
        scans = {name: played.scan(name) for name in names}
        estimates = {name: played.estimate(name) for name in names}
        try:
            drafts = Distributor(played, scans, estimates, MODELS[model], is_large=is_large).distribute(root)
        except (NotDivided, duckdb.Error):
            continue
        if is_large and any(draft.order for draft in drafts):
            continue  # how rows are merged is the engine's
        limit = drafts[-1].limit
        cut = "" if limit is None else f" LIMIT {limit.taken or 1_000_000} OFFSET {limit.skipped}"
        rows, types = rows_of(duck, sql)
        answer, own_types = rows_of(duck, f"SELECT * FROM ({drafts[-1].sql}) AS answer{cut}" if cut else drafts[-1].sql)
        assert (len(answer) if cut else answer) == (len(rows) if cut else rows), (sql, [one.sql for one in drafts])
        assert own_types == types
        compared += 1
    assert compared or path.stem in _WITHOUT_QUERIES
