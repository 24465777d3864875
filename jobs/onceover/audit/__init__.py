"""Proves certified windows again: from raw, from the rows that readers query, and from Kafka's log."""
