"""Tells what is known of a window, in words and as values."""
