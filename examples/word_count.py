"""Word count over files: a pipeline that reads and counts text on every member, and adds up where the words meet.

Run it with ``python -m examples.word_count``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import secateur
from secateur.connectors import collect
from secateur.processors import count_rows, desc

__all__ = ["main", "words_of"]

TEXTS = {
    "roses.txt": "A rose is a rose is a rose\nThe rose in the garden is pruned in spring\n",
    "shears.txt": "Prune first then run\nA gardener prunes the rose with a secateur\n",
    "garden.txt": "The garden is large\nThe gardener is not\n",
}


def words_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The words of lines: one call for thousands of lines, no loop in Python."""
    lines = pc.utf8_lower(batch["line"])
    return pa.record_batch({"word": pc.list_flatten(pc.split_pattern_regex(lines, r"\s+"))})


def main() -> None:
    """Write three files, count their words on three members, print the most frequent."""
    with (
        tempfile.TemporaryDirectory() as name,
        secateur.start(members=3, runtime="embedded") as cluster,
        cluster.connect() as conn,
    ):
        folder = Path(name)
        for file, text in TEXTS.items():
            (folder / file).write_text(text, encoding="utf-8")
        pipeline = (
            secateur.Pipeline()
            .read_files(folder / "*.txt")
            .map(words_of, name="split")
            .key_by("word")
            .aggregate(times=count_rows())
            .sort(desc("times"), "word", limit=5)
            .write_to(collect())
        )
        print("stages:", " -> ".join(vertex.name for vertex in pipeline.to_dag()))
        job = pipeline.submit(conn)
        for row in job.result(timeout_s=60).to_pylist():
            print(f"{row['word']:<8} {row['times']}")
        print("members that took part:", ", ".join(job.members_touched))


if __name__ == "__main__":
    main()
