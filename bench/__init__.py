"""Benchmarks: each beside a peer in one run, correctness first."""
