"""The dashboard: pages of HTML over the system tables, which a small script keeps up to date.

The script fetches the page again and changes what differs, so focus, scrolling and open parts stay. There is no second
form of a page for updates, no framework and no build. Statements are read as the summaries that members add up: the
list of 3,300 statements cost eight times as much, most of it in the controller's event loop.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "overview": ["Mark", "Period", "Series", "alerts", "draw_chart", "minute_of"],
    "pages": ["HOT_KEYS", "JOBS", "LOADS", "NEXT_HEADER", "TENANTS", "SortedColumn", "TableSort", "spelled_keys"],
    "partition_map": ["HeatOfTable", "PartitionHeat", "Uses", "draw_partition_map"],
    "plans": ["check_query"],
    "pruning_report": ["report_pruning", "tables_of"],
    "readings": ["PERIOD_S", "PacedReading", "Reading", "Readings"],
    "templating": ["ClusterLine", "PageTexts", "line_from", "missing_members", "rendered"],
}

__all__, __getattr__ = exports(__name__, _FILES)
