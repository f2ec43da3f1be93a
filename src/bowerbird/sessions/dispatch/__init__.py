"""Who drives a turn: the dispatcher and the lease.

Must not be here: what the driver does (`turn`).
"""
