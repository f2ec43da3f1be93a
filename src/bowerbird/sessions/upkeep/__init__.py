"""What runs beside turns, now and then: start-up, retention, memory, disk, trash.

Must not be here: anything that a turn waits for.
"""
