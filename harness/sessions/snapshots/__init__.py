"""Track 1: snapshots of state, and the stores that keep them."""
