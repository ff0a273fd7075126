"""What a table and a model are."""
