"""Plans as text: each statement of the ``.sql`` files beside this one, its EXPLAIN, and what it touched when it ran.

A file is a list of blocks with a line of ``----`` between them. A block is comments, of which one may state properties (``-- partitions=3 members=1
execution=local``), one statement, and the expected lines of EXPLAIN in ``/* */``: those that do not name members. The first block creates the tables. Every
query is executed as well, on three members, pruned and unpruned, and compared with DuckDB over the same rows.

``SECATEUR_PLANS_UPDATE=1`` writes the files anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import secateur
from secateur.cluster import Cluster

FILES = sorted(Path(__file__).parent.glob("*.sql"))
SEPARATOR = "\n----\n"
SHOWN = ("tree:", "rewrites:", "co-located:", "scan ", "  ", "when distributed:", "before that, ")


@dataclass(frozen=True)
class Block:
    path: Path
    comments: str
    sql: str
    expected: str

    @property
    def properties(self) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S+)", self.comments))

    @property
    def title(self) -> str:
        return re.sub(r"\W+", "_", self.comments.splitlines()[0].removeprefix("--").strip())


def _blocks(path: Path) -> list[Block]:
    blocks = []
    for text in path.read_text().split(SEPARATOR):
        statement, _, rest = text.partition("/*")
        comments = [line for line in statement.splitlines() if line.startswith("--")]
        sql = "\n".join(line for line in statement.strip().splitlines() if not line.startswith("--"))
        blocks.append(Block(path, "\n".join(comments), sql.strip(), rest.removesuffix("\n").removesuffix("*/").strip("\n")))
    return blocks


@pytest.fixture(scope="module")
def running(cluster: Cluster) -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    """The tables of all files, on the cluster and in DuckDB."""
    oracle = duckdb.connect()
    with cluster.connect() as conn:
        for path in FILES:
            for statement in filter(None, map(str.strip, _blocks(path)[0].sql.split(";"))):
                conn.execute(statement)
                oracle.execute(re.sub(r"\)\s+(PARTITION BY|REPLICATED|BACKUPS)[^;]*$", ")", statement, flags=re.DOTALL))
        yield conn, oracle
    oracle.close()


def _plan(conn: secateur.Connection, sql: str) -> str:
    lines = str(conn.explain(sql)).splitlines()
    lines = lines[: lines.index("dag:") if "dag:" in lines else None]
    return "\n".join(line for line in lines if line.startswith(SHOWN) and "execution: " not in line)


@pytest.mark.parametrize("block", [pytest.param(block, id=f"{path.stem}-{block.title}") for path in FILES for block in _blocks(path)[1:]])
def test_plan(block: Block, running: tuple[secateur.Connection, duckdb.DuckDBPyConnection]) -> None:
    conn, oracle = running
    plan = _plan(conn, block.sql)
    if os.environ.get("SECATEUR_PLANS_UPDATE"):
        blocks = [
            f"{b.comments}\n{b.sql}" + (f"\n/*\n{plan if b == block else b.expected}\n*/" if b.expected or b == block else "") for b in _blocks(block.path)
        ]
        block.path.write_text(SEPARATOR.join(blocks) + "\n")
    else:
        assert plan == block.expected
    answer = conn.execute(block.sql)
    found = {"partitions": answer.stats.partitions_read, "members": answer.stats.members_touched, "execution": str(answer.stats.execution)}
    assert {name: str(found[name]) for name in block.properties} == block.properties
    expected = oracle.execute(block.sql).fetchall()
    assert _comparable(answer.fetchall(), block) == _comparable(expected, block)
    conn.execute("SET pruning = off")
    try:
        assert _comparable(conn.execute(block.sql).fetchall(), block) == _comparable(expected, block)
    finally:
        conn.execute("SET pruning = on")


def _comparable(rows: list[tuple[Any, ...]], block: Block) -> list[str]:
    texts = [repr([float(value) if isinstance(value, float) else value for value in row]) for row in rows]
    return texts if "ORDER BY" in block.sql else sorted(texts)
