"""Sessions that are copied, taken elsewhere, or taken over."""
