"""Repairs windows: claims them, rebuilds them from raw, proves and publishes the result."""
