"""What else a project says against a finding: asked before one is reported that rests on an assumption."""
