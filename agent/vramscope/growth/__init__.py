"""What grows in the job: live memory by the line that allocated it, from step end to step end."""
