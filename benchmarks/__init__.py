"""Measurements, each run as `python -m benchmarks.<name>`; `make bench` runs them all."""
