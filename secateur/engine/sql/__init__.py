"""SQL on the engine: the plan of a SELECT as data, and its stages as vertices."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "fragment_stage": ["FragmentStageSupplier", "MemberScan"],
    "key_search": ["DirectSearch", "KeyEnd", "KeyOperand", "KeySearch"],
    "row_changes": ["RowChanges"],
    "row_stream": ["RowPieces"],
    "row_upsert": ["RowUpsert", "UpsertProgram"],
    "scatter": ["row_merge_of"],
    "select_plan": ["ExternalScan", "FetchedRows", "PinnedScan", "ScanPlan", "SelectPlan", "Strategy"],
    "stage": ["ExchangeKind", "InputAlias", "QueryStage"],
}

__all__, __getattr__ = exports(__name__, _FILES)
