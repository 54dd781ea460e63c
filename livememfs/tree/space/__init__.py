"""What a space shows in the mount: one module for each kind of directory or file in it."""
