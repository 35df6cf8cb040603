"""Conformance kits: the tests that every implementation of an interface must pass, for authors who replace a part of
rushlight.

A kit is a class of tests. Its user derives from it, defines what is tested, and lets pytest collect the result:

    class TestMyDevice(DeviceContract):
        device = "mine"

Needs pytest, which rushlight-testing does not install by itself.
"""

from rushlight_testing.conformance.allocator import AllocatorContract
from rushlight_testing.conformance.autograd import AutogradContract
from rushlight_testing.conformance.contract import Contract
from rushlight_testing.conformance.device import DeviceContract

__all__ = ["AllocatorContract", "AutogradContract", "Contract", "DeviceContract"]
