"""A member: its partitions, statements, writes and their copies, loads, and jobs."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "acknowledgements": ["Acknowledgements"],
    "attempts": ["MemberAttempts"],
    "change_registry": ["ChangeKey", "ChangeRegistry", "RecordedChange"],
    "change_turns": ["ChangeTurns", "full_partition", "full_table"],
    "copies": ["MemberCopies"],
    "estimate_misses": ["EstimateMisses"],
    "hot_keys": ["HotKeySampler"],
    "kept_results": ["KeptResults"],
    "loads": ["MemberLoads"],
    "member": ["Member"],
    "memory_admission": ["MemoryAdmission", "kernel_memory_of", "memory_limit_of"],
    "open_results": ["GRANT_BYTES_MAX", "OpenResults", "within_bounds"],
    "query_steps": ["PartResult", "SteppedQueries", "combined_result", "run_in_steps"],
    "ranges": ["MemberRanges", "RangeChanges"],
    "read_state": ["check_state", "marks_of", "read_here"],
    "received_rows": ["pieces_to_keep"],
    "replica": ["CountOut", "Effect", "Replica", "ReplicaPhase", "ReplicatedChange", "SendChange"],
    "replication": ["Replication"],
    "retried_runs": ["in_some_form"],
    "slow_statements": ["SlowStatements", "TimeSplit", "why_slow"],
    "space_saving": ["FrequentValue", "SpaceSaving"],
    "statement_admission": ["StatementAdmission", "full_member"],
    "statement_log": ["StatementLog"],
    "statement_queue": ["StatementQueue"],
    "table_directory": ["TableDirectory"],
    "writes": ["MemberWrites"],
}

__all__, __getattr__ = exports(__name__, _FILES)
