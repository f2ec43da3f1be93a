"""Claude Code in a private chat: choosing a project, talking, where each person is.

Must not be here: running it, reading its files (`gateway/`), who may write.
"""
