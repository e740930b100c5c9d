"""Which member owns which partition, and how owners are chosen."""
