"""HOW FAST: each peer side by side, in one run, correctness first."""
