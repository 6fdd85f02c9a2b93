"""Who may do what: tokens, browser sessions, and the checks against foreign web pages."""
