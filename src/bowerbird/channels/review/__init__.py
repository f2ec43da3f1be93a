"""Review from a chat: summaries and diffs with buttons, landing, undoing, comments on lines.

Must not be here: what landing is (`sessions/review.py`), other cards.
"""
