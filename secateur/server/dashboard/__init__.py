"""The dashboard: pages of HTML over the system tables, which a small script keeps up to date."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "cluster_line": ["ClusterLine", "Interval", "interval_between"],
    "hot_key_shares": ["hot_keys_by_share"],
    "pages": ["NEXT_HEADER"],
    "page_texts": ["PageTexts"],
    "partition_heat": ["HeatOfTable", "PartitionHeat", "Uses"],
    "partition_map": ["draw_partition_map"],
    "plan_picture": ["PlanPicture"],
    "pruning_report": ["report_pruning"],
    "query_text": ["check_query"],
    "readings": ["PERIOD_S", "Reading", "Readings"],
    "sorting": ["SortedColumn", "TableSort"],
    "statement_groups": ["tables_of"],
    "templating": ["rendered"],
}

__all__, __getattr__ = exports(__name__, _FILES)
