"""Hundreds of teachers at once, beside a loop of scikit-learn's."""
