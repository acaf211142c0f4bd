"""Programs for those who work on Privet; they are not installed with it."""
