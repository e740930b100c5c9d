"""What runs: a statement split in two, and the forms of its pieces for the arrow kernel."""
