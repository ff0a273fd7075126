"""Folders that releases wrote, opened by this one."""
