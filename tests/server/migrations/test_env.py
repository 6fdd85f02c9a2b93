from __future__ import annotations

import io

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from vramscope_server.store.database import MIGRATIONS_FOLDER


def test_the_migrations_are_one_line_of_files_that_travel_with_the_package() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS_FOLDER))
    revisions = [script.revision for script in scripts.walk_revisions()][::-1]
    assert len(scripts.get_heads()) == 1
    assert revisions[0] == "0001"
    assert (MIGRATIONS_FOLDER / "env.py").is_file()


def test_postgresql_is_told_not_to_compress_bodies_again() -> None:
    from alembic.operations import Operations

    module = ScriptDirectory(str(MIGRATIONS_FOLDER)).get_revision("0001").module
    sql = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": sql}
    )
    with Operations.context(context):
        module.upgrade()
    assert sql.getvalue().count("SET STORAGE EXTERNAL") == 3
    assert "BIGSERIAL" in sql.getvalue()
    with Operations.context(context):
        module.downgrade()
    assert "DROP TABLE chunks" in sql.getvalue()
