"""PATE, measured: what a student learns from noisy votes, and what the votes cost."""
