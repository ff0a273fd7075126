"""A party's side of scoring people: grants, what was answered, keys, and the receiver's file."""
