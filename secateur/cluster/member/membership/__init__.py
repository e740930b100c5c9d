"""A member's place in the cluster: topologies, its lease, and what it knows for those without a controller."""
