"""The controller: catalog, topology, planning, loads, and jobs on record."""
