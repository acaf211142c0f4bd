"""Defences as they are taught, beside differential privacy: one experiment, one picture."""
