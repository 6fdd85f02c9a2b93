"""The store: column chunks, rollups, events, commands, tokens and audit in one database."""
