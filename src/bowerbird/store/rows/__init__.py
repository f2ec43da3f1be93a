"""One module per table: small functions inside a transaction they are given.

Must not be here: decisions about turns (`bowerbird.sessions`).
"""
