"""Processes: what one may still open, children that can be killed, families that end together, locks."""
