"""What a line of a ledger is, and the files that lines and what belongs to them stand in."""
