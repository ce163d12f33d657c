"""One turn, from its acceptance to its last write."""
