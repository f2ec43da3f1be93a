"""Commands that show and land changes, and their dialogues.

Must not be here: what landing does (`bowerbird.workspace.landing`).
"""
