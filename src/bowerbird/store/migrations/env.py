"""How Alembic runs a revision here: on the connection it is given, in the caller's transaction.

Here: that binding. Not here: URLs, engines, logging; `store/migrate.py` owns those.
"""

from alembic import context

from bowerbird.store.sql.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
