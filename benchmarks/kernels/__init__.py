"""What one kernel call costs, and when the arrow kernel is worth having."""
