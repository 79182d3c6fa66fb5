"""The register machine: runs of small kernels as one call, and its compiled loops."""
