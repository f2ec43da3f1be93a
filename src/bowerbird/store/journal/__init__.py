"""The journal: records, blobs, group commit, what cannot be read.

Must not be here: what a record means (`bowerbird.sessions.journal`).
"""
