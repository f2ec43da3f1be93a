"""Provider agents as a feature of sessions: runs whose changes are a session's, tools of the main agent.

Must not be here: any agent, the registry of them (`providers/`).
"""
