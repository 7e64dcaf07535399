"""How Alembic runs: on the connection that `Database.migrate` hands over."""

from alembic import context

from thresher.market.tables import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
context.run_migrations()
