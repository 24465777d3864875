"""Audit: proves certified windows again, from raw, the rows that readers query, and Kafka's log."""
