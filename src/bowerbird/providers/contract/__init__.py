"""What every provider agent is: requests, answers, events, errors, and the two protocols between rooms.

Here: those types. Not here: any adapter, any I/O.
"""
