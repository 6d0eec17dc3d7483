"""What people look at: figures and reports."""
