"""A vertical job with products between parties under encryption: experimental."""
