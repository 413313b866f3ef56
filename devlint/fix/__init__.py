"""Fixes: from edits on CST nodes to text edits, their application in checked rounds, and the atomic write."""
