"""Whether a member lives: what a separate connection to it shows."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from secateur.client.channel_options import ChannelOptions
from secateur.errors import Error, UnreachableError
from secateur.partitioning.topology.topology import MemberAddress

_PROBE_S: Final = 0.5
"""How long a member that did not answer may take to say hello over another connection."""
_PROBES_MAX: Final = 3


class Sign(Enum):
    """The state of a member as a separate connection to it shows."""

    ANSWERS = auto()
    SILENT = auto()
    """The connection is accepted or not, and nothing comes: the process is stopped, or the network to it is cut.

    It may come back.
    """
    GONE = auto()
    """No process listens at its address any more, or it has left the cluster."""


def sign_at(member: MemberAddress, options: ChannelOptions) -> Sign:
    """Look at a member over a connection of its own. Takes at most half a second for one that is silent."""
    for _ in range(_PROBES_MAX):
        channel = options.channel(member.host, member.port, timeout_s=_PROBE_S)
        try:
            channel.connect()
        except UnreachableError as error:
            if error.details.get("refused"):
                return Sign.GONE
            if error.details.get("silent"):
                return Sign.SILENT
        except Error:
            return Sign.ANSWERS
        else:
            return Sign.ANSWERS
        finally:
            channel.close()
    return Sign.GONE  # it hangs up again and again: the process is about to end
