"""The time line of a branch: freezing, marks, snapshots, going back.

Must not be here: differences between two states (`compare`).
"""
