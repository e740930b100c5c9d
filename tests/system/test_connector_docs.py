"""The connector in ``docs/connectors.md`` runs, and keeps its contract."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import secateur
from secateur.testing import verify_connector

PAGE = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text(encoding="utf-8")


def test_the_example_reads_the_shards_of_the_ids(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"shard{number}.db") for number in range(3)]
    for number, path in enumerate(paths):
        shard = sqlite3.connect(path)
        shard.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        shard.executemany("INSERT INTO people VALUES (?, ?)", [(1000 * number + n, f"p{n}") for n in range(50)])
        shard.commit()
        shard.close()
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    declared, used = code.split("\n\n\nwith secateur.start(")
    names: dict[str, object] = {"__name__": "shards"}
    exec(declared, names)
    assert "SELECT name FROM people WHERE id IN (7, 1007)" in used
    connector = names["Shards"](paths)  # type: ignore[operator]
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.register("people", connector)
        cursor = conn.execute("SELECT name FROM people WHERE id IN (7, 1007)")
        assert cursor.fetchall() == [("p7",), ("p7",)]
        assert cursor.stats is not None
        assert (cursor.stats.partitions_read, cursor.stats.partitions_total) == (2, 3)
        assert conn.execute("SELECT count(*), sum(id) FROM people WHERE id > 1040").fetchall() == [
            (59, sum(range(1041, 1050)) + sum(range(2000, 2050)))
        ]
    verify_connector(connector)
