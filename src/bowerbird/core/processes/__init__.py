"""Processes: what this one may still open, a child that can be killed, one whose family ends with it, locks between them."""
