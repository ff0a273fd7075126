"""A vertical job in few numbers: local moments, shared directions, one solve."""
