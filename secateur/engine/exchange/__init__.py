"""Rows between processors: inbox and outbox, edges, and the exchange between members with flow control."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "batches": ["RowBuffer", "batches_of", "bytes_of", "remember_bytes"],
    "exchange": ["ExchangeLink", "ExchangeReceiver", "ExchangeSender", "RemoteLane", "SharedEncoder", "encode_batches"],
    "inbox": ["Inbox"],
    "key_routing": [
        "ROUTING_PARTITIONS",
        "can_route",
        "routing_partition_of_name",
        "routing_partitions",
        "scheme_partitions",
    ],
    "outbox": ["DirectOutbox", "EdgeWriter", "LaneGroup", "WaitingOutbox", "partitioned_route"],
}

__all__, __getattr__ = exports(__name__, _FILES)
