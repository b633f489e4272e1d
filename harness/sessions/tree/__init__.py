"""Track 2 of one session: what a call writes, and what can be asked of it."""
