"""Schedules: runs that start by themselves, once for all hosts of a bucket."""
