from rushlight_core._C import *
