"""REST: one file per resource. Bodies are checked by pydantic here and nowhere deeper."""
