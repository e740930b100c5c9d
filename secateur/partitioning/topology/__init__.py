"""Which member owns which partition, and how owners are chosen."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "affinity": ["assign"],
    "affinity_growth": ["grow"],
    "copies_gained": ["gains_copies"],
    "job_requirements": ["JobRequirements"],
    "owner_routing": ["OwnerRouting"],
    "required_owners": ["coordinators"],
    "topology": ["OWNERS_PAGE", "MemberAddress", "Ownership", "Topology"],
}

__all__, __getattr__ = exports(__name__, _FILES)
