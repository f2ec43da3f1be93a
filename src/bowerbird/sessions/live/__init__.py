"""Events as they happen, for whoever watches in this or another process.

Must not be here: what is kept (`journal`).
"""
