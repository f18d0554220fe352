"""What the cells should have been: the random mixed field."""
