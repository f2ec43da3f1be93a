"""Which branches a data directory holds, and what all handles on one branch share.

Must not be here: what a branch contains (`tree`), its time line (`history`).
"""
