"""A member: its partitions, statements, writes and their copies, loads, and jobs."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "admission.memory_admission": ["MemoryAdmission", "kernel_memory_of", "memory_limit_of"],
    "admission.statement_admission": ["StatementAdmission", "full_member"],
    "admission.tenant_gate": ["TenantGate"],
    "admission.tenants": ["TenantAccount", "TenantAccounts"],
    "admission.statement_queue": ["StatementQueue", "TenantShare"],
    "changes.change_registry": ["ChangeKey", "ChangeRegistry", "RecordedChange"],
    "changes.change_turns": ["ChangeTurns", "full_partition", "full_table"],
    "changes.loads": ["MemberLoads"],
    "changes.row_guards": ["RowGuards"],
    "changes.writes": ["MemberWrites", "pieces_to_keep"],
    "jobs": ["KeptResults", "MemberAttempts"],
    "lease_keeper": ["LeaseKeeper"],
    "member": ["Member"],
    "member_storage": ["MemberStorage"],
    "monitoring.hot_keys": ["FrequentValue", "HotKeySampler", "SpaceSaving"],
    "monitoring.slow_statements": ["SlowStatements", "TimeSplit", "why_slow"],
    "monitoring.statement_log": ["StatementLog"],
    "monitoring.statement_sums": ["EndedStatement"],
    "monitoring.tenant_ledger": ["TenantLedger"],
    "replication.acknowledgements": ["Acknowledgements", "UnconfirmedPublications"],
    "replication.replica": ["CountOut", "Effect", "Replica", "ReplicaPhase", "ReplicatedChange", "SendChange"],
    "replication.replication": ["Replication"],
    "statements.open_results": ["GRANT_BYTES_MAX", "OpenResults", "within_bounds"],
    "statements.query_steps": ["PartResult", "SteppedQueries", "combined_result", "run_in_steps"],
    "table_checks": ["MemberTableChecks", "check_plan"],
    "alterations": ["MemberAlterations", "Alterations"],
    "table_directory": ["TableDirectory"],
    "monitoring.stored_stats": ["EstimateMisses"],
    "stored_tables": ["MemberCopies"],
    "statements.prepared_statements": ["check_state", "marks_of", "read_here"],
    "statements.distributed_statements": ["in_some_form"],
}

__all__, __getattr__ = exports(__name__, _FILES)
