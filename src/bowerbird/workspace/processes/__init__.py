"""What the sandbox needs of a branch: mounts or a copy, and capturing what processes changed.

Must not be here: starting processes (`bowerbird.sandbox`).
"""
