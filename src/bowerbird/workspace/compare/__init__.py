"""What a branch changed, as values, records and patches; merging two branches.

Must not be here: what a change means for people (`marks`), carrying it out (`landing`).
"""
