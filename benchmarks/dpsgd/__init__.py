"""A step of private training beside a step of plain training and of opacus'."""
