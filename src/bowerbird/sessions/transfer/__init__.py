"""Sessions out of a store and into one: export, import, backup.

Must not be here: reading other programs' tables for anything else.
"""
