"""What helps people to choose an epsilon and limits: tables and pictures of what each would do."""
