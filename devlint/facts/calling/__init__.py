"""What the calls in the whole project hand a function: asked where a finding rests on what was assumed of an argument."""
