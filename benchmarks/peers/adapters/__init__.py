"""One file for each peer, run in the peer's environment: ``serve`` holds members, ``call`` is a client."""
