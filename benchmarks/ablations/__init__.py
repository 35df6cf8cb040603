"""Measure the effect of each part of the library: training steps with one part switched off at a time."""
