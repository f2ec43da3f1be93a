"""A turn as a terminal shows it, and the questions it asks.

Must not be here: which session it belongs to (`run`).
"""
