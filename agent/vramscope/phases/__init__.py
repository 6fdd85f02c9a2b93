"""What the job is doing: training, evaluating, saving, waiting for data, or what the user says."""
