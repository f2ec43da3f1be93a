"""The terminal itself: text, colours, exit codes, options given anywhere.

Must not be here: sessions, branches, settings' meaning.
"""
