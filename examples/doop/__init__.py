"""Points-to analyses of compiled Java programs, in the style of Doop."""
