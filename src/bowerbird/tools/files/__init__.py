"""The tools for files, patches and symbols, and how a model sees files.

Must not be here: how a branch keeps files (`bowerbird.workspace`).
"""
