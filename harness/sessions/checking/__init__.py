"""Whether a ledger is what was written."""
