"""What the model sees of a conversation: pure functions of its lines."""
