"""What users are told: files, columns and rows given on the command line."""
