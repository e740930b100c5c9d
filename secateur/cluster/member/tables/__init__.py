"""The tables of a member: their definitions, ranges and statistics, and the merging of recent changes."""
