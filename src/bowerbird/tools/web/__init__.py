"""The tools that fetch and search, and the guard of what they may reach.

Must not be here: the network of sandboxed commands (`bowerbird.sandbox.network`).
"""
