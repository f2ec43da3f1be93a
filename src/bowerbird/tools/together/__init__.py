"""The tools of lists, boards, teams and subagents.

Must not be here: what they do (`bowerbird.boards`, `bowerbird.teams`, `bowerbird.subagents`).
"""
