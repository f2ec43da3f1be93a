"""Features of sessions bound to settings, models and sandboxes: one module each; `app/parts.py` lists them.

Must not be here: what a feature does, which is its own package's.
"""
