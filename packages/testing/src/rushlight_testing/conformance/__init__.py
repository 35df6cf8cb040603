"""Conformance kits: the tests that an implementation of an interface of rushlight must pass.

A kit is a class of tests. To use a kit, derive a class from it that defines the implementation to test, and let pytest
collect that class:

    class TestMyDevice(DeviceContract):
        device = "mine"

The kits need pytest, which must be installed separately.
"""

from rushlight_testing.conformance.allocator import AllocatorContract
from rushlight_testing.conformance.autograd import AutogradContract
from rushlight_testing.conformance.contract import Contract
from rushlight_testing.conformance.device import DeviceContract

__all__ = ["AllocatorContract", "AutogradContract", "Contract", "DeviceContract"]
