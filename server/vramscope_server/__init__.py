"""The vramscope server: ingest, store, live fan-out, commands, REST and the page."""
