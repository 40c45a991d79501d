"""A list of downstream tasks on several encoders: one table, resumable cell by cell."""
