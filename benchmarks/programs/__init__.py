"""The measurements that the suite `programs` runs in fresh processes: loading, calls, capture, and the C interface."""
