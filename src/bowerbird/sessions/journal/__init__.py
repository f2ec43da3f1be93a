"""Journal records to and from events, and what they add up to.

Must not be here: writing them (`bowerbird.store.journal`).
"""
