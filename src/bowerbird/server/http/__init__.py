"""HTTP as such: bodies, connections, downloads, pages, repeated requests.

Must not be here: sessions and branches.
"""
