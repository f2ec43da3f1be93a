"""Tables, migrations, and what the databases need to be told.

Must not be here: rows of any one table (`rows`).
"""
