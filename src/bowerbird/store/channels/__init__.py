"""Rows of chat channels: who may write, what arrived and was sent, messages with buttons, who receives.

Must not be here: rows of sessions and turns, what any of them means to a chat.
"""
