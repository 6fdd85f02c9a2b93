"""The browser's side: who follows what, and one connection per page."""
