"""One member's partitions: sorted columnar rows, a delta of recent changes, and loads that are published at once.

From the outside in: a member calls :mod:`~secateur.storage.member_store`; a :mod:`~secateur.storage.partition` is
:mod:`~secateur.storage.sorted_rows` plus a :mod:`~secateur.storage.delta`, and its readers get a
:mod:`~secateur.storage.snapshot` of both; a :mod:`~secateur.storage.load` is staged, prepared and published. Below
these, :mod:`~secateur.storage.merge` sorts and merges, :mod:`~secateur.storage.key_order` defines the order, and
:mod:`~secateur.storage.block` holds the bytes.

**Invariants.** A snapshot never changes. A change that raises has changed nothing. Every table at rest has the table's
Arrow schema, one chunk a column, is sorted by primary key, holds every key once, and keeps no memory alive but its own.
Publication of a prepared load cannot fail.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "block": ["BLOCK_BYTES_MIN", "concatenate", "into_block", "message_bytes", "single_array"],
    "change": ["ChangeCount", "ChangeOperation", "DuplicateKeys", "MIXED", "MixedAttempt", "load_mode"],
    "change_feed": ["feed_table"],
    "delta": ["FewRows"],
    "hosted_tables": ["ReadVersions"],
    "key_column": ["KeyColumn"],
    "key_order": ["KeyOrder"],
    "key_windows": ["KeyWindows"],
    "layout": ["TableLayout"],
    "load": ["Preparation", "STEP_BYTES"],
    "load_registry": ["LoadOutcome"],
    "member_store": ["DataVersion", "MemberStore", "TableStats"],
    "merge": ["common_row", "new_rows", "sort_rows"],
    "partition": ["Partition"],
    "pinned_rows": ["bytes_kept"],
    "read_lease": ["ReadLease"],
    "snapshot": ["PartitionSnapshot"],
    "sorted_rows": ["SortedRows"],
    "stored_columns": ["StoredColumns"],
    "table_summary": ["summarize"],
}

__all__, __getattr__ = exports(__name__, _FILES)
