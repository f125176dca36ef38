"""lope's own CPU kernels: C++, compiled once for the processor they run on."""
