"""Compacts certified windows to Parquet beside their text."""
