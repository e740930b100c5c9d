"""SQL on the engine: the plan of a SELECT as data, and its stages as vertices."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "client_merge": ["row_merge_of"],
    "fragment_stage": ["FragmentStageSupplier"],
    "kernel_call": ["in_thread"],
    "key_search": ["DirectSearch", "KeyEnd", "KeyOperand", "KeySearch"],
    "member_scan": ["MemberScan"],
    "row_changes": ["RowChanges"],
    "row_stream": ["RowPieces"],
    "row_upsert": ["RowUpsert", "UpsertProgram"],
    "select_plan": ["ExternalScan", "FetchedRows", "PinnedScan", "ScanPlan", "SelectPlan", "Strategy"],
    "stage": ["ExchangeKind", "InputAlias", "QueryStage"],
}

__all__, __getattr__ = exports(__name__, _FILES)
