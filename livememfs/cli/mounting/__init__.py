"""The commands and the daemon of a mount: mount, umount, status, service, fstab."""
