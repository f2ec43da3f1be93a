"""The file tools of a branch: reading, writing, editing, copying, moving.

Must not be here: finding files (`find`), layers on disk (`tree`).
"""
