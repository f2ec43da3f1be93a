"""What every table is declared with: the one `MetaData`, its names for keys and indexes, numbers of rows.

Here: those two values. Not here: tables (`tables.py`, `team_tables.py`).
"""

from sqlalchemy import BigInteger, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

RowId = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by INTEGER only
