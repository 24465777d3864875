"""Shows records that have no place in any window, and releases those that have one now."""
