"""Rows between processors: inbox and outbox, edges, and the exchange between members with flow control."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "batches": ["RowBuffer", "batches_of", "bytes_of", "remember_bytes"],
    "exchange": ["ExchangeLink", "ExchangeReceiver", "ExchangeSender", "RemoteLane", "SharedEncoder", "encode_batches"],
    "inbox": ["Inbox"],
    "key_routing": ["can_route", "routing_partitions", "scheme_partitions"],
    "outbox": ["DirectOutbox", "EdgeWriter", "LaneGroup", "WaitingOutbox"],
    "routes": ["Destination", "partitioned_route", "route_of"],
}

__all__, __getattr__ = exports(__name__, _FILES)
