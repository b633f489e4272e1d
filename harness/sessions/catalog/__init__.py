"""The sessions of one tenant and agent: listed, searched, counted."""
