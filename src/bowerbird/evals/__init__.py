"""Judging agents: suites of tasks, tries of models and agents at them, a report.

Lives here: reading suites, running one try and its hidden check, the report as values and as a page. Must not
be here: how a turn runs (`sessions`), what a terminal shows (`cli/run/evaluate.py`).
"""
