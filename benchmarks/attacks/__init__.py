"""Membership attacks on MNIST, and how fast shadow models train."""
