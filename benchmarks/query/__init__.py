"""What a private answer costs beside the plain one."""
