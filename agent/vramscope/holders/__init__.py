"""Why objects of the job are alive: from a tensor to a name that a person knows."""
