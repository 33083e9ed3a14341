"""The queries of Lupei's thesis on nested collections, over tables of the shapes of TPC-H.

What comes in: a scale and a number of batches. What goes out: seconds of a live view, of evaluating
again and of an incremental program by hand. It imports the engine and what measures beside it.
"""
