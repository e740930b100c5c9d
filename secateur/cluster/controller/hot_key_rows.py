"""The rows of ``secateur.hot_keys``: what members have sampled, with shares of the whole cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from secateur.protocol.hot_keys import HotKeys


def list_hot_keys(answers: Sequence[tuple[str, HotKeys]], names: Mapping[int, str]) -> Iterable[dict[str, Any]]:
    """List the hottest keys of each table, by member.

    Members sample alike, so what they have sampled together stands for the look-ups of the cluster.

    Args:
        answers: The ids of members, and what they have told.
        names: The tables that there are, by id.
    """
    totals: dict[int, int] = {}
    for _, answer in answers:
        for table in answer.tables:
            totals[table.table_id] = totals.get(table.table_id, 0) + table.sampled
    for member, answer in answers:
        for table in answer.tables:
            name, total = names.get(table.table_id), totals[table.table_id]
            if name is None or not total:
                continue
            for key in table.keys:
                yield {
                    "table_name": name,
                    "key": key.key,
                    "member": member,
                    "partition": key.partition,
                    "share": key.count / total,
                    "share_error": key.error / total,
                    "sampled": key.count,
                }
