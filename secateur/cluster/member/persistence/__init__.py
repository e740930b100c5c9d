"""What a member keeps on disk: its log, checkpoints, and recovery."""
