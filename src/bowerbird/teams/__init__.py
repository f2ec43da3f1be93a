"""Teams: their rules, changes and requests, as functions of values and transactions.

Must not be here: teammates' turns (`bowerbird.sessions.teams`).
"""
