"""Both databases, for what must hold on either."""

from support.databases import database_url, postgres, postgres_url

__all__ = ["database_url", "postgres", "postgres_url"]
