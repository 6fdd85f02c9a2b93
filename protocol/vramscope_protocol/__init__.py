"""The contract between agent, server and browser. Imports msgspec and nothing of ours."""
