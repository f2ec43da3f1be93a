"""Rows of the tables: small functions that read and write them inside a transaction they are given.

Must not be here: decisions about turns (`bowerbird.sessions`).
"""
