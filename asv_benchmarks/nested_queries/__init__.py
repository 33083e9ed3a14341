"""The queries of Lupei's thesis on nested collections, over tables of the shapes of TPC-H.

Comes in:    a scale and a number of batches.
Goes out:    seconds of a live view, of evaluating again, and of an incremental program by hand.
May import:  the engine and the tools of measurement.
"""
