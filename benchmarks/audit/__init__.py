"""How close audits come to what is promised, and how long they take."""
