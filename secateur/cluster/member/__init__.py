"""A member: its partitions, statements, writes and their copies, loads, and jobs."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "admission.memory_admission": ["MemoryAdmission", "kernel_memory_of", "memory_limit_of"],
    "admission.statement_admission": ["StatementAdmission", "full_member"],
    "admission.statement_queue": ["StatementQueue"],
    "changes.change_registry": ["ChangeKey", "ChangeRegistry", "RecordedChange"],
    "changes.change_turns": ["ChangeTurns", "full_partition", "full_table"],
    "changes.loads": ["MemberLoads"],
    "changes.many_writes": ["ManyWrites"],
    "changes.received_rows": ["pieces_to_keep"],
    "changes.writes": ["MemberWrites"],
    "jobs.attempts": ["MemberAttempts"],
    "jobs.kept_results": ["KeptResults"],
    "member": ["Member"],
    "membership.lease_keeper": ["LeaseKeeper"],
    "monitoring.estimate_misses": ["EstimateMisses"],
    "monitoring.hot_keys": ["FrequentValue", "HotKeySampler", "SpaceSaving"],
    "monitoring.slow_statements": ["SlowStatements", "TimeSplit", "why_slow"],
    "monitoring.statement_log": ["StatementLog"],
    "replication.acknowledgements": ["Acknowledgements"],
    "replication.copies": ["MemberCopies"],
    "replication.replica": ["CountOut", "Effect", "Replica", "ReplicaPhase", "ReplicatedChange", "SendChange"],
    "replication.replication": ["Replication"],
    "replication.unconfirmed_publications": ["UnconfirmedPublications"],
    "statements.open_results": ["GRANT_BYTES_MAX", "OpenResults", "within_bounds"],
    "statements.query_steps": ["PartResult", "SteppedQueries", "combined_result", "run_in_steps"],
    "statements.read_state": ["check_state", "marks_of", "read_here"],
    "statements.statement_run": ["in_some_form"],
    "table_checks": ["MemberTableChecks"],
    "tables.alterations": ["MemberAlterations", "Alterations"],
    "tables.table_directory": ["TableDirectory"],
}

__all__, __getattr__ = exports(__name__, _FILES)
