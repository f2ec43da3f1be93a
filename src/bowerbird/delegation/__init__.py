"""Many agents at once: subagents on forks, tournaments, the task board, lists, teams (DE).

Lives here: what an agent may hand to others and how it comes back, above one agent's loop.
Must not be here: sessions and turns (they drive what is here), doors, settings.
"""
