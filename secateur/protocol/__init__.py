"""What travels between clients, the controller and members: operations, their requests and replies, and how values
become bytes.
"""

from __future__ import annotations

from secateur.protocol.codec import Codec, decode, encode
from secateur.protocol.failure import Failure
from secateur.protocol.message import Acknowledged, Message, Notice, Role
from secateur.protocol.operation import OperationBase, Server, operation_of
from secateur.protocol.operations import CONTROLLER_OPERATIONS, MEMBER_OPERATIONS, Operation
from secateur.protocol.values import pack, unpack
from secateur.protocol.version import PROTOCOL_VERSION

__all__ = [
    "CONTROLLER_OPERATIONS",
    "MEMBER_OPERATIONS",
    "PROTOCOL_VERSION",
    "Acknowledged",
    "Codec",
    "Failure",
    "Message",
    "Notice",
    "Operation",
    "OperationBase",
    "Role",
    "Server",
    "decode",
    "encode",
    "operation_of",
    "pack",
    "unpack",
]
