"""The arrow kernel: small fragments answered with Arrow's own functions, or declined."""
