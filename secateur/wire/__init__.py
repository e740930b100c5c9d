"""Frames between clients, members and the controller: values and tables as bytes, the listening side and the two
calling sides.
"""

from __future__ import annotations

from secateur.wire.arrow_ipc import decode_table, decode_tables, encode_table
from secateur.wire.call_control import CallControl
from secateur.wire.channel import Channel
from secateur.wire.connection import Handler
from secateur.wire.frames import PROTOCOL_VERSION, FrameKind, Payload
from secateur.wire.handshake import ClusterIdentity
from secateur.wire.limits import Limits
from secateur.wire.messages import Answer, PeerInfo, Reply, Request, Role
from secateur.wire.peer import Peer
from secateur.wire.server import FrameServer
from secateur.wire.short_table import ShortTable
from secateur.wire.values import pack, unpack

__all__ = [
    "PROTOCOL_VERSION",
    "Answer",
    "CallControl",
    "Channel",
    "ClusterIdentity",
    "FrameKind",
    "FrameServer",
    "Handler",
    "Limits",
    "Payload",
    "Peer",
    "PeerInfo",
    "Reply",
    "Request",
    "Role",
    "ShortTable",
    "decode_table",
    "decode_tables",
    "encode_table",
    "pack",
    "unpack",
]
