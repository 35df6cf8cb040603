"""What each part of the library is worth: training steps with one part switched off at a time."""
