"""Retention: expires raw older than its pipeline keeps it, listed first, moved aside, deleted a day later."""
