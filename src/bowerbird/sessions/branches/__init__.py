"""Which branch belongs to which session, and what happens to it.

Must not be here: the branch itself (`bowerbird.workspace`).
"""
