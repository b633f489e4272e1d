"""What is shown of a conversation that is too long to be shown, and what is read back of it."""
