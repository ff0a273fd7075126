"""Design matrices, dense and sparse, and the compiled kernels over them."""
