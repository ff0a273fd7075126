"""A party's side of each method."""
