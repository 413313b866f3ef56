"""The rules that ship with devlint. `RULES` is the only list of them: explicit, sorted by code."""

from __future__ import annotations

from typing import Any

from devlint.api import Rule
from devlint_rules.accelerator_api_unguarded import AcceleratorApiUnguarded
from devlint_rules.amp_device_type import AmpDeviceType
from devlint_rules.card_not_visible import CardNotVisible
from devlint_rules.cold_timing import ColdTiming
from devlint_rules.create_then_move import CreateThenMove
from devlint_rules.cross_stream_use import CrossStreamUse
from devlint_rules.cuda_api_unguarded import CudaApiUnguarded
from devlint_rules.cuda_method import CudaMethodCall
from devlint_rules.cuda_only_api import CudaOnlyApi
from devlint_rules.cuda_only_selection import CudaOnlySelection
from devlint_rules.cuda_required import CudaRequired
from devlint_rules.current_card import CurrentCard
from devlint_rules.data_parallel_devices import DataParallelDevices
from devlint_rules.ddp_device_ids import DdpDeviceIds
from devlint_rules.default_device_cuda import DefaultDeviceCuda
from devlint_rules.default_tensor_type import DefaultTensorType
from devlint_rules.deprecated_device_api import DeprecatedDeviceApi
from devlint_rules.device_comparison import DeviceComparison
from devlint_rules.device_in_worker import DeviceInWorker
from devlint_rules.discarded_transfer_result import DiscardedTransferResult
from devlint_rules.empty_cache_in_loop import EmptyCacheInLoop
from devlint_rules.float64_on_mps import Float64OnMps
from devlint_rules.generator_device import GeneratorDevice
from devlint_rules.graph_retained import GraphRetained
from devlint_rules.hardcoded_backend import HardcodedBackend
from devlint_rules.hardcoded_device import HardcodedDevice
from devlint_rules.host_conversion import HostConversion
from devlint_rules.host_round_trip import HostRoundTrip
from devlint_rules.ignored_device_argument import IgnoredDeviceArgument
from devlint_rules.index_as_device import IndexAsDevice
from devlint_rules.index_device_mismatch import IndexDeviceMismatch
from devlint_rules.legacy_cuda_type import LegacyCudaType
from devlint_rules.lengths_on_device import LengthsOnDevice
from devlint_rules.load_without_map_location import LoadWithoutMapLocation
from devlint_rules.mixed_device_operands import MixedDeviceOperands
from devlint_rules.module_input_device import ModuleInputDevice
from devlint_rules.new_tensor_default_device import NewTensorDefaultDevice
from devlint_rules.no_such_function import NoSuchFunction
from devlint_rules.no_such_method import NoSuchMethod
from devlint_rules.non_blocking_to_host import NonBlockingToHost
from devlint_rules.non_blocking_unpinned import NonBlockingUnpinned
from devlint_rules.not_in_torch_version import NotInTorchVersion
from devlint_rules.optimizer_before_move import OptimizerBeforeMove
from devlint_rules.pinned_memory_misuse import PinnedMemoryMisuse
from devlint_rules.rank_as_device_index import RankAsDeviceIndex
from devlint_rules.stale_buffer_alias import StaleBufferAlias
from devlint_rules.sync_in_loop import SyncInLoop
from devlint_rules.transfer_in_loop import TransferInLoop
from devlint_rules.transferred_parameter import TransferredParameter
from devlint_rules.unregistered_module import UnregisteredModule
from devlint_rules.unregistered_tensor import UnregisteredTensor
from devlint_rules.unsynchronized_event import UnsynchronizedEvent
from devlint_rules.unsynchronized_timing import UnsynchronizedTiming
from devlint_rules.visible_devices_late import VisibleDevicesLate
from devlint_rules.wrong_device_argument import WrongDeviceArgument

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
