"""Teammates of a session: their lives, mail, requests and what they leave behind.

Must not be here: the rules (`bowerbird.teams`), the turns themselves (`turn`).
"""
