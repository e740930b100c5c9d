"""The controller: catalog, topology, planning, loads, and jobs on record."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "access_commands": [
        "TokenCommands",
        "check_columns",
        "check_replacement",
        "with_renamed",
        "without_grants",
        "without_table",
    ],
    "catalog": ["Catalog"],
    "cluster_state": ["ClusterState"],
    "controller": ["Controller"],
    "disk_losses": ["DiskLosses", "lost_by"],
    "history": ["History", "LoadHistory", "LoadState", "LoadStatus"],
    "job_record": [
        "AwaitAttemptEnd",
        "CancelAttempt",
        "Effect",
        "FinishRecord",
        "JobRecord",
        "RESTARTS_MAX",
        "StartAttempt",
    ],
    "job_registry": ["JobRegistry", "RegisteredJob"],
    "leaving": ["Leaving"],
    "loads": ["LoadPublication", "LoadPublisher"],
    "membership": [
        "CopiesMoved",
        "CopyLost",
        "MemberJoined",
        "MemberLost",
        "MemberReturned",
        "OwnersForgotten",
        "PrimariesMoved",
        "RangesChanged",
        "TableCreated",
        "absent_owners",
        "advance",
        "group_after",
        "group_of_new",
    ],
    "planning": ["PlanningThreads"],
    "publication_numbers": ["PublicationNumbers"],
    "publications": ["LoadAnswers", "StreamPublisher"],
    "alteration": ["alter_table"],
    "rebalancing": ["CopiesOfGroup", "Move", "empty", "moves_of"],
    "standby": ["is_free", "serve_when_free"],
    "statistics_cache": ["StatisticsCache"],
    "stream_batches": ["StreamBatches"],
    "system_tables": ["list_hot_keys", "tenant_rows"],
    "table_commands": ["TableCommands"],
    "takeover": ["Takeover"],
    "topology_delivery": ["TopologyDelivery"],
    "two_phase_commit": ["CommitPhase", "Order", "TwoPhaseCommit"],
}

__all__, __getattr__ = exports(__name__, _FILES)
