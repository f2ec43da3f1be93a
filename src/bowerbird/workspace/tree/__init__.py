"""One branch on disk: bytes, layers, paths, and the view that they make together.

Must not be here: anything that knows of other branches, of landings or of tools.
"""
