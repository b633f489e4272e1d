"""The ledger of one session: read without a lock, written under one."""
