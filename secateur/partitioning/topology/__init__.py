"""Which member owns which partition, and how owners are chosen."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "affinity": ["assign", "grow"],
    "owner_routing": ["OwnerRouting", "by_primary", "copies_of", "primaries_of", "served_by"],
    "topology": ["MemberAddress", "OWNERS_PAGE", "Ownership", "Topology", "gains_copies"],
}

__all__, __getattr__ = exports(__name__, _FILES)
