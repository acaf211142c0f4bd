"""Attacks whose result is a picture, measured: gradient matching and model inversion."""
