"""Telegram: updates in, messages out, over the Bot API.

Must not be here: who may write, what a message does, what is stored of it (the rooms above).
"""
