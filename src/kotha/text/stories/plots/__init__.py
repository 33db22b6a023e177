"""What happens in the stories, news items and entries: prose, one subject a text file."""
