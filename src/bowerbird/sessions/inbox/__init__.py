"""What people send to a session, accepted in one transaction.

Must not be here: what a turn makes of it (`turn`).
"""
