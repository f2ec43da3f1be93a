"""The keys of every section of the settings, as frozen values with their defaults and ranges.

Lives here: one module per floor of the house, each a few `Section` classes. Must not be
here: reading of files or environment, checks across sections (`config/checks.py`).
"""
