"""The rules that ship with devlint. `RULES` is the only list of them: explicit, sorted by code."""

from __future__ import annotations

from typing import Any

from devlint.api import Rule

from .accelerator_api_unguarded import AcceleratorApiUnguarded
from .amp_device_type import AmpDeviceType
from .card_not_visible import CardNotVisible
from .cold_timing import ColdTiming
from .create_then_move import CreateThenMove
from .cross_stream_use import CrossStreamUse
from .cuda_api_unguarded import CudaApiUnguarded
from .cuda_method import CudaMethodCall
from .cuda_only_api import CudaOnlyApi
from .cuda_only_selection import CudaOnlySelection
from .cuda_required import CudaRequired
from .current_card import CurrentCard
from .data_parallel_devices import DataParallelDevices
from .ddp_device_ids import DdpDeviceIds
from .default_device_cuda import DefaultDeviceCuda
from .default_tensor_type import DefaultTensorType
from .deprecated_device_api import DeprecatedDeviceApi
from .device_comparison import DeviceComparison
from .device_in_worker import DeviceInWorker
from .discarded_transfer_result import DiscardedTransferResult
from .empty_cache_in_loop import EmptyCacheInLoop
from .float64_on_mps import Float64OnMps
from .generator_device import GeneratorDevice
from .graph_retained import GraphRetained
from .hardcoded_backend import HardcodedBackend
from .hardcoded_device import HardcodedDevice
from .host_conversion import HostConversion
from .host_round_trip import HostRoundTrip
from .ignored_device_argument import IgnoredDeviceArgument
from .index_as_device import IndexAsDevice
from .index_device_mismatch import IndexDeviceMismatch
from .legacy_cuda_type import LegacyCudaType
from .lengths_on_device import LengthsOnDevice
from .load_without_map_location import LoadWithoutMapLocation
from .mixed_device_operands import MixedDeviceOperands
from .module_input_device import ModuleInputDevice
from .new_tensor_default_device import NewTensorDefaultDevice
from .no_such_function import NoSuchFunction
from .no_such_method import NoSuchMethod
from .non_blocking_to_host import NonBlockingToHost
from .non_blocking_unpinned import NonBlockingUnpinned
from .not_in_torch_version import NotInTorchVersion
from .optimizer_before_move import OptimizerBeforeMove
from .pinned_memory_misuse import PinnedMemoryMisuse
from .rank_as_device_index import RankAsDeviceIndex
from .stale_buffer_alias import StaleBufferAlias
from .sync_in_loop import SyncInLoop
from .transfer_in_loop import TransferInLoop
from .transferred_parameter import TransferredParameter
from .unregistered_module import UnregisteredModule
from .unregistered_tensor import UnregisteredTensor
from .unsynchronized_event import UnsynchronizedEvent
from .unsynchronized_timing import UnsynchronizedTiming
from .visible_devices_late import VisibleDevicesLate
from .wrong_device_argument import WrongDeviceArgument

RULES: tuple[type[Rule[Any]], ...] = (
    MixedDeviceOperands,
    NewTensorDefaultDevice,
    ModuleInputDevice,
    IndexDeviceMismatch,
    DiscardedTransferResult,
    UnregisteredTensor,
    UnregisteredModule,
    TransferredParameter,
    HostConversion,
    GeneratorDevice,
    OptimizerBeforeMove,
    LengthsOnDevice,
    StaleBufferAlias,
    HardcodedDevice,
    CudaMethodCall,
    LegacyCudaType,
    DefaultTensorType,
    CudaApiUnguarded,
    CudaOnlyApi,
    DeviceComparison,
    LoadWithoutMapLocation,
    AmpDeviceType,
    HardcodedBackend,
    CudaOnlySelection,
    AcceleratorApiUnguarded,
    DefaultDeviceCuda,
    Float64OnMps,
    CudaRequired,
    NoSuchMethod,
    NoSuchFunction,
    WrongDeviceArgument,
    NotInTorchVersion,
    IndexAsDevice,
    DeprecatedDeviceApi,
    IgnoredDeviceArgument,
    UnsynchronizedTiming,
    UnsynchronizedEvent,
    ColdTiming,
    CreateThenMove,
    SyncInLoop,
    TransferInLoop,
    NonBlockingUnpinned,
    NonBlockingToHost,
    EmptyCacheInLoop,
    HostRoundTrip,
    GraphRetained,
    PinnedMemoryMisuse,
    CrossStreamUse,
    DataParallelDevices,
    DdpDeviceIds,
    RankAsDeviceIndex,
    VisibleDevicesLate,
    DeviceInWorker,
    CurrentCard,
    CardNotVisible,
)
