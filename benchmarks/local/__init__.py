"""How fast answers are randomised and counted, beside other people's libraries."""
