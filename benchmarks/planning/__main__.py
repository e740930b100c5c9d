"""Run the suite: ``python -m benchmarks.planning``."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from benchmarks.planning.cases import Cost, list_costs, one_key_costs, partition_costs

__all__ = ["main"]


def main() -> int:
    """Measure, write the JSON, print the table.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.planning", description="From the text and values of a statement to its partitions."
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("build/bench/planning.json"),
        help="where the report goes (default: %(default)s)",
    )
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()

    costs: list[Cost] = []
    print(f"{'':64} {'us':>12} {'per element':>12} {'ratio':>7}")
    for cost in chain(one_key_costs(), list_costs(), partition_costs()):
        costs.append(cost)
        print(_line(cost), flush=True)
    _write(options.json, costs)
    print(f"written to {options.json}")
    return int(options.check and not all(cost.met for cost in costs))


def _line(cost: Cost) -> str:
    per_element = "" if cost.per_element_us is None else f"{cost.per_element_us:.3f}"
    ratio = "" if cost.ratio is None else f"{cost.ratio:.2f}"
    verdict = "" if cost.bar is None else f"  {cost.bar}: {'met' if cost.met else 'MISSED'}"
    return f"{cost.what:64} {cost.us:12,.2f} {per_element:>12} {ratio:>7}{verdict}"


def _write(path: Path, costs: Sequence[Cost]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "costs": [asdict(cost) for cost in costs],
    }
    path.write_text(json.dumps(data, indent=1))


if __name__ == "__main__":
    sys.exit(main())
