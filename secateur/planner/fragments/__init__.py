"""What runs: a statement cut in two, and the forms of its pieces for the arrow kernel."""
