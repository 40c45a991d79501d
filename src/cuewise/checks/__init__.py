"""Contract batteries: what every member of a kind promises, as checks that cuewise's own and a user's members go through."""
