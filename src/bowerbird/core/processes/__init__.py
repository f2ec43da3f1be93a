"""Child processes: one that answers and can be killed, and one whose whole family ends with it."""
