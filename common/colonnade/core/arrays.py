"""Names for the array types that cross module borders."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
Int16Array: TypeAlias = NDArray[np.int16]
Int32Array: TypeAlias = NDArray[np.int32]
FloatArray: TypeAlias = NDArray[np.float64]
AnyArray: TypeAlias = NDArray[Any]
