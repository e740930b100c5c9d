"""Write what EXPLAIN answers today into the files: ``make plans``, or ``python tests/plans/rewrite.py`` with parts of
names, such as ``pruning/``.

Read the difference before it is committed: it is what a change of the planner does.
"""

from __future__ import annotations

import sys

import secateur
from answers import answer, define, described
from plan_files import PlanFile, read_all


def rewrite(files: list[PlanFile]) -> None:
    stored = [file for file in files if file.has_rows]
    for file in files:
        if not file.has_rows:
            _write(file, described(file))
    if stored:
        with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
            for file in stored:
                define(conn, file)
                _write(file, [answer(conn, case) for case in file.cases])


def _write(file: PlanFile, expected: list[str]) -> None:
    changed = sum(case.expected != text for case, text in zip(file.cases, expected, strict=True))
    if changed:
        file.path.write_text(file.with_expectations(expected).text)
        print(f"{file.name}: {changed} of {len(file.cases)} cases are written anew")


if __name__ == "__main__":
    rewrite([file for file in read_all() if not sys.argv[1:] or any(part in file.name for part in sys.argv[1:])])
