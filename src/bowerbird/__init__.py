"""Bowerbird: AI agents that work on a branch of your files; nothing lands until you merge it."""

__version__ = "0.1.0"
