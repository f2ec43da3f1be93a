"""Commands that talk with sessions: chat, one-shot turns, lists, following.

Must not be here: drawing a turn (`turn`), reviewing changes (`review`).
"""
