"""Loops over rounds: recomputed whole, continued from the previous result, or adaptive."""
