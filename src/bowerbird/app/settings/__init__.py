"""Settings that a page shows and changes while the server runs, and a first model (UI-83).

Must not be here: what takes effect (`reloading.py`), the settings tree (`config`), routes.
"""
