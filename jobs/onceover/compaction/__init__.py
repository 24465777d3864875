"""Compaction: certified windows, compressed beside their text."""
