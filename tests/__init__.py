"""Tests, one directory a room; a package, so that no installed package of the same name can take its place."""
