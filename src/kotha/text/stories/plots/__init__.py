"""What happens in the stories, news items and entries, one subject a file."""
