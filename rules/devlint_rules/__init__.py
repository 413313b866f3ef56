"""The rules that ship with devlint. `RULES` is the only list of them: explicit, sorted by code."""

from __future__ import annotations

from typing import Any

from devlint.api import Rule
from devlint_rules.create_then_move import CreateThenMove
from devlint_rules.cuda_method import CudaMethodCall
from devlint_rules.discarded_transfer_result import DiscardedTransferResult
from devlint_rules.hardcoded_device import HardcodedDevice
from devlint_rules.host_conversion import HostConversion
from devlint_rules.index_as_device import IndexAsDevice
from devlint_rules.load_without_map_location import LoadWithoutMapLocation
from devlint_rules.mixed_device_operands import MixedDeviceOperands
from devlint_rules.module_input_device import ModuleInputDevice
from devlint_rules.new_tensor_default_device import NewTensorDefaultDevice
from devlint_rules.no_such_method import NoSuchMethod
from devlint_rules.unregistered_module import UnregisteredModule
from devlint_rules.unregistered_tensor import UnregisteredTensor
from devlint_rules.unsynchronized_event import UnsynchronizedEvent
from devlint_rules.unsynchronized_timing import UnsynchronizedTiming

RULES: tuple[type[Rule[Any]], ...] = (
    MixedDeviceOperands,
    NewTensorDefaultDevice,
    ModuleInputDevice,
    DiscardedTransferResult,
    UnregisteredTensor,
    UnregisteredModule,
    HostConversion,
    HardcodedDevice,
    CudaMethodCall,
    LoadWithoutMapLocation,
    NoSuchMethod,
    IndexAsDevice,
    UnsynchronizedTiming,
    UnsynchronizedEvent,
    CreateThenMove,
)
