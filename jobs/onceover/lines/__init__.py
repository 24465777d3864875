"""Raw format 3: records as lines of a window file, one by one (the reference) and in arrays (the kernels)."""
