"""Git directories of a branch: what happened in them, and bringing it into the user's repository (D-25).

Must not be here: landing of files (`bowerbird.workspace.landing`), git inside the sandbox.
"""
