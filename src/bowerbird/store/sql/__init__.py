"""The tables as SQLAlchemy knows them, and what databases need besides: pragmas, clock, notices, disk room.

Must not be here: rows of any one table (`rows`).
"""
