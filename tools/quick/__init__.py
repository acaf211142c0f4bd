"""Checks of what has changed, in under 90 seconds."""
