"""The one version number: agent, server and page are released together."""

__version__ = "0.1.0"
