"""The static schedule of TPU kernels: bundles of instructions as the compiler wrote them into a profile or a dump."""
