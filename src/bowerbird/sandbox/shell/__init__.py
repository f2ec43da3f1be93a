"""Files and a few allowed commands on a directory, as one plain object.

Must not be here: sandboxes of branches.
"""
