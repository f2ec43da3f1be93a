"""What people without an open connection are owed, until it arrives.

Must not be here: live events (`live`).
"""
