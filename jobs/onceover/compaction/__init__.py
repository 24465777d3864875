"""Compaction: certified windows as Parquet beside their text."""
