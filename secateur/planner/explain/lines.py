"""EXPLAIN as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, assert_never

from secateur.drawing.quantity import count_text
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.sql.stage import ExchangeKind, stage_relation
from secateur.partitioning.pruning.domain import Domain
from secateur.partitioning.pruning.key_range import IndexSlice, KeyPrefix, KeyRanges, KeySlice
from secateur.partitioning.pruning.tree import domain_text, value_text
from secateur.planner.explain.external_scans import external_text
from secateur.planner.explain.scan_facts import ScanExplanation, json_values

_PARTITIONS_SHOWN_MAX: Final = 16
_GOES: Final = {
    ExchangeKind.GATHER: ", to the coordinator",
    ExchangeKind.BROADCAST: ", to every member",
    ExchangeKind.ROUTE: ", to the owners of the keys",
    ExchangeKind.SHUFFLE: ", to members by hash",
}


def head_text(pruning: dict[str, Any], facts: Sequence[ScanExplanation]) -> list[str]:
    """Return where the statement runs, its tree, the rewrites, and each scan."""
    lines = [
        execution_text(pruning, "" if all(fact.known for fact in facts) else "at most "),
        f"pruning: {'on' if pruning['enabled'] else 'off'}, topology version {pruning['topology_version']}",
    ]
    if pruning["tree"]:
        lines.append(f"tree: {pruning['tree']}")
    if "rewrites" in pruning:
        lines.append(f"rewrites: {', '.join(pruning['rewrites'])}")
    lines.extend(line for fact in facts for line in _scan_text(fact))
    lines.extend(f"co-located: {', '.join(group)}" for group in pruning.get("co_located", ()))
    return lines


def execution_text(pruning: dict[str, Any], may: str = "") -> str:
    """Return where the statement runs; ``may`` stands before the number of members where that is not certain."""
    members, total = pruning["required_members"], pruning["members_total"]
    return f"execution: {pruning['execution']} on {may}{len(members)} of {total} members{listed(members)}"


def _scan_text(fact: ScanExplanation) -> list[str]:
    scan = fact.scan
    name = scan.table if scan.alias == scan.table else f"{scan.table} AS {scan.alias}"
    total = scan.tree.total
    if scan.system is not None:
        return [f"scan {name}: system table, its rows are computed when the statement runs"]
    if scan.external is not None:
        return [*external_text(name, scan.external, fact.reason), *_rows_text(fact)]
    if scan.replicated:
        return [f"scan {name}: replicated, every member has it", *_key_bounds_text(fact.keys), *_rows_text(fact)]
    if fact.partitions is None:
        kept = f"all {total} partitions" if fact.known else f"the partitions that the parameters select, of {total}"
        lines = [f"scan {name}: {kept}", f"  because {fact.reason}"]
    else:
        partitions = listed([f"p{partition}" for partition in fact.partitions])
        lines = [f"scan {name}: {len(fact.partitions)} of {total} partitions{partitions}"]
    if fact.partitions is not None and not fact.partitions:
        return lines
    return [*lines, *_key_values_text(fact), *_key_bounds_text(fact.keys), *_rows_text(fact)]


def _key_values_text(fact: ScanExplanation) -> list[str]:
    if not fact.key_values:
        return []
    keys = [_parts_text(key) for key in fact.key_values[:_PARTITIONS_SHOWN_MAX]]
    return [f"  partitioning key ({', '.join(fact.key)}): {', '.join(keys)}"]


def _rows_text(fact: ScanExplanation) -> list[str]:
    """Return the columns that are read, the expected rows, and the filter that the rows have to pass."""
    rows = "" if fact.rows is None else f"; about {count_text(fact.rows, 'row')}"
    lines = [f"  columns: {', '.join(fact.scan.columns)}{rows}"]
    if fact.scan.policy:
        which = "no policy lets a row pass" if not fact.scan.policies else f"policy {', '.join(fact.scan.policies)}"
        lines.append(f"  {which}: {fact.scan.policy}")
    return [*lines, f"  filter: {fact.filter}"] if fact.filter else lines


def _key_bounds_text(keys: KeySlice | None) -> list[str]:
    match keys:
        case None:
            return []
        case KeyPrefix(values):
            return [f"  primary key bounds: {_key_text(json_values(values))}"]
        case KeyRanges():
            return [f"  primary key bounds: {_ranges_text(keys, 'key')}"]
        case IndexSlice(name, columns, part):
            what = f"({', '.join(columns)})" if len(columns) > 1 else columns[0]
            said = (
                f"{what} = {_key_text(json_values(part.values))}"
                if isinstance(part, KeyPrefix)
                else _ranges_text(part, what)
            )
            return [f"  index {name}: {said}"]
        case _:
            assert_never(keys)


def _ranges_text(keys: KeyRanges, what: str) -> str:
    if not keys.ranges:
        return f"no {what}"
    lower, upper = keys.ranges[0].lower, keys.ranges[-1].upper
    below = f"{_key_text(json_values(lower.values))} {'<' if lower.after else '<='} " if lower.values else ""
    above = f" {'<=' if upper.after else '<'} {_key_text(json_values(upper.values))}" if upper.values else ""
    return f"{below}{what}{above}" + (f", in {len(keys.ranges)} ranges" if len(keys.ranges) > 1 else "")


def dag_text(dag: dict[str, Any]) -> list[str]:
    """The vertices and edges; no line when there are none."""
    if not dag["vertices"]:
        return []
    vertices = [
        f"  {vertex['name']} x{vertex['local_parallelism']}{listed(vertex['members'])}" for vertex in dag["vertices"]
    ]
    return [
        "dag:",
        *vertices,
        *(
            f"  {edge['from']} -> {edge['to']}: {edge['kind']}{', distributed' if edge['distributed'] else ''}"
            for edge in dag["edges"]
        ),
    ]


def stages_text(plan: SelectPlan) -> list[str]:
    """Describe for each stage of a statement its input, and where its rows are sent."""
    lines = [f"when distributed: in {len(plan.stages)} stages"]
    for index, stage in enumerate(plan.stages):
        is_last = index == len(plan.stages) - 1
        read = [plan.scans[scan].alias for scan in stage.scans] + [stage_relation(input) for input in stage.inputs]
        where = "at the coordinator" if stage.at_coordinator else "at the members"
        what = f" over {', '.join(read)}" if read else ""
        goes = "" if is_last else _GOES[stage.exchange] + (", in order" if stage.order else "")
        lines.append(f"  {'' if is_last else f'{stage_relation(index)} '}{stage.name}: {where}{what}{goes}")
    return [*lines, f"  gathered: {plan.gather_reason}"] if plan.gather_reason else lines


def _parts_text(key: Sequence[Any | Domain]) -> str:
    """A key of values and domains."""
    parts = (
        domain_text(part) if isinstance(part, Domain) else value_text(value)
        for part, value in zip(key, json_values(key), strict=True)
    )
    return f"({', '.join(parts)})"


def _key_text(key: Sequence[Any]) -> str:
    return f"({', '.join(value_text(value) for value in key)})"


def listed(names: Sequence[str]) -> str:
    """Names in brackets behind a space, the first 16 of them; nothing for none."""
    if not names:
        return ""
    shown = list(islice(names, _PARTITIONS_SHOWN_MAX))
    more = f", {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f" [{', '.join(shown)}{more}]"
