"""Listing, searching and reading files, for tools and for people.

Must not be here: changing any file.
"""
