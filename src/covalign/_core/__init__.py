"""What every room above shares: linear algebra, threads, messages, files, progress."""
