"""Facts about torch that no file of it states in a form a program can read, each group with its source.

A group is (source, fields, names). Fields are those of the stored text (`records.py`): they replace what was generated;
flags (`f`) and accepted keywords (`a`) are added. A name is a function of torch without `torch.`, a method as
`Tensor:item`, or `.matmul` for both the function and the tensor method. `F:` stands for `nn.functional.`.
"""

from __future__ import annotations

from functools import cache

from devlint.knowledge.records import Class, Function, patch_function

_CPU_BUILD = "called on a CPU-only build of torch 2.13: raises"
_COMPOSITE = (
    "composite of operators with that check: aten/src/ATen/native/native_functions.yaml and the kernels it names"
)
_MIGRATION = "documentation page torch.accelerator and docstring of the replacement"
_PYTHON = "Python source of the function, which has no annotation"

GROUPS: tuple[tuple[str, str, str], ...] = (
    # -- what may be mixed: composite operators, by the operators that they call ------------------------------------
    (
        _COMPOSITE,
        "m=e",
        """
        .matmul .mv .outer .ger .kron cdist linalg.matmul linalg.multi_dot linalg.solve linalg.solve_ex linalg.lstsq
        linalg.tensorsolve chain_matmul tensordot einsum bilinear F:bilinear F:linear .addr stack hstack vstack dstack
        column_stack row_stack concat concatenate cartesian_prod conv1d conv2d conv3d conv_transpose1d
        conv_transpose2d conv_transpose3d conv_tbc convolution batch_norm layer_norm group_norm instance_norm rms_norm
        F:batch_norm F:layer_norm F:group_norm F:instance_norm F:rms_norm F:cross_entropy F:nll_loss
        F:linear_cross_entropy F:multilabel_margin_loss F:triplet_margin_loss F:triplet_margin_with_distance_loss
        triplet_margin_loss F:scaled_dot_product_attention F:embedding F:embedding_bag
        embedding embedding_bag F:grid_sample grid_sampler F:max_unpool1d F:local_response_norm lstm gru rnn_tanh
        rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell .cross .cholesky_solve .lu_solve .lstsq .orgqr .prelu
        F:prelu .take_along_dim .put .index_fill Tensor:index_fill_ .masked_scatter
        .diff complex polar trapezoid trapz cumulative_trapezoid .smm .sspaddmm .stft .istft svd_lowrank pca_lowrank
        lobpcg Tensor:addr_ sparse.mm sparse.addmm sparse.sampled_addmm F:grouped_mm F:scaled_mm F:scaled_grouped_mm
        spmm dsmm hspmm saddmm
        """,
    ),
    ("aten/src/ATen/native/Sorting.cpp, `quantile_checks`", "m=e", ".quantile .nanquantile"),
    (
        _COMPOSITE,
        "m=s",
        """
        .allclose .isclose .dist .logical_and .logical_or .logical_xor Tensor:logical_and_ Tensor:logical_or_
        Tensor:logical_xor_ .ldexp ldexp_ Tensor:ldexp_ .arctan2 Tensor:arctan2_ .true_divide .multiply .divide
        .subtract .greater .greater_equal .less .less_equal .not_equal .float_power .max .min
        Tensor:true_divide_ Tensor:multiply_ Tensor:divide_ Tensor:subtract_ Tensor:float_power_
        F:cosine_embedding_loss
        F:cosine_similarity cosine_similarity F:gaussian_nll_loss F:hinge_embedding_loss F:kl_div kl_div
        F:margin_ranking_loss F:multilabel_soft_margin_loss F:pairwise_distance pairwise_distance F:poisson_nll_loss
        poisson_nll_loss F:soft_margin_loss margin_ranking_loss hinge_embedding_loss cosine_embedding_loss
        linalg.vecdot special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
        special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he
        special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t
        special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v
        special.shifted_chebyshev_polynomial_w Tensor:__rpow__ Tensor:__rtruediv__
        Tensor:__rdiv__ Tensor:__rfloordiv__ Tensor:__rmod__ Tensor:__rlshift__ Tensor:__rrshift__ Tensor:__iadd__
        Tensor:__isub__ Tensor:__imul__ Tensor:__itruediv__ Tensor:__idiv__ Tensor:__ipow__ Tensor:__ifloordiv__
        Tensor:__imod__ Tensor:__iand__ Tensor:__ior__ Tensor:__ixor__ Tensor:__ilshift__ Tensor:__irshift__
        """,
    ),
    (
        "composite of igamma(c), an exact check: aten/src/ATen/native/native_functions.yaml",
        "m=e",
        """
        special.gammainc special.gammaincc Tensor:__rmatmul__ Tensor:__matmul__ .cov gradient .repeat_interleave
        """,
    ),
    (
        "aten/src/ATen/native/cuda/IndexKernel.cpp (masked_fill: mask on the tensor's device, a 0-dim value "
        "from anywhere)",
        "m=s",
        ".masked_fill Tensor:masked_fill_",
    ),
    (
        "run on a card (benchmarks/gpu): a 0-dim CPU tensor is refused beside the card's",
        "m=e",
        """
        .inner .addcdiv Tensor:addcdiv_ F:mse_loss F:smooth_l1_loss F:binary_cross_entropy
        F:binary_cross_entropy_with_logits binary_cross_entropy_with_logits
        """,
    ),
    (
        "torch/nn/functional.py: `broadcast_tensors` first; run on a card (benchmarks/gpu)",
        "m=x",
        "F:l1_loss",
    ),
    (
        "aten/src/ATen/native/Fill.cpp, LossCTC.cpp: the other tensor is read, or moved, from anywhere",
        "m=c",
        "fill Tensor:fill_ F:ctc_loss ctc_loss",
    ),
    (
        "aten/src/ATen/native/sparse/SparseTensor.cpp: indices and values; run on a card (benchmarks/gpu)",
        "m=e|p=indices*,values*,size",
        "sparse_coo_tensor",
    ),
    (
        "aten/src/ATen/native/TensorShape.cpp: checks its tensors itself",
        "m=e",
        "block_diag meshgrid",
    ),
    (
        "include/ATen/native/IndexingUtils.h: indices on the CPU or on the tensor's device",
        "m=i",
        ".index_put Tensor:index_put_ index_put_ Tensor:__getitem__ Tensor:__setitem__ Tensor:index",
    ),
    (
        "aten/src/ATen/native/Copy.cpp: copies between devices",
        "m=c",
        "Tensor:copy_ Tensor:to Tensor:cuda Tensor:cpu Tensor:xpu Tensor:type_as nn.utils.rnn.pad_sequence",
    ),
    (
        "native_functions.yaml, `device_check: NoCheck`, and aten/src/ATen/native/TensorShape.cpp: a copy into a clone",
        "m=c",
        ".diagonal_scatter .slice_scatter .select_scatter .as_strided_scatter",
    ),
    (
        "reads shapes only, or returns its inputs as they are: aten/src/ATen/native/TensorShape.cpp",
        "m=n",
        """
        Tensor:expand_as Tensor:view_as Tensor:reshape_as Tensor:resize_as_ resize_as_ broadcast_tensors atleast_1d
        atleast_2d atleast_3d .is_same_size
        """,
    ),
    # -- the same device as which argument ------------------------------------------------------------------------
    (
        "docstrings of torch.tensor, as_tensor, asarray: the device of tensor data is kept",
        "d=like",
        "tensor as_tensor asarray nested.nested_tensor nested.as_nested_tensor",
    ),
    (
        "aten/src/ATen/native/TensorShape.cpp, _shape_as_tensor: at::tensor of the sizes, with no device",
        "r=tensor|d=cpu|p=x",
        "_shape_as_tensor onnx.operators.shape_as_tensor",
    ),
    (
        "docstrings; include/ATen/DLConvertor.h",
        "r=tensor|d=cpu",
        "from_numpy frombuffer from_file",
    ),
    (
        "docstring of torch.normal and torch/utils/_device.py, which leaves it out: the device of tensor "
        "parameters, else CPU",
        "r=tensor|d=like|f=c",
        "normal",
    ),
    (
        "torch/csrc/Generator.cpp and torch/utils/_device.py: the CPU when no device is given",
        "f=c",
        "Generator from_file",
    ),
    (
        "docstring: an external array keeps its device",
        "r=tensor|d=none",
        "from_dlpack utils.dlpack.from_dlpack",
    ),
    (
        "torch/random.py: the CPU generator's state",
        "r=tensor|d=cpu",
        """
        get_rng_state random.get_rng_state cuda.get_rng_state cuda.get_rng_state_all xpu.get_rng_state
        xpu.get_rng_state_all mps.get_rng_state mtia.get_rng_state mtia.get_rng_state_all Generator:get_state
        """,
    ),
    (
        "torch/random.py",
        "r=tensors",
        "cuda.get_rng_state_all xpu.get_rng_state_all mtia.get_rng_state_all",
    ),
    (
        "docstring of Tensor.to: an argument that is a tensor stands for its device and dtype",
        "d=like|p=device,dtype,non_blocking,copy",
        "Tensor:to",
    ),
    (
        "docstring of Tensor.cuda: without a device the current one of that backend",
        "d=like",
        "Tensor:cuda Tensor:xpu",
    ),
    (
        "docstring of Tensor.cpu and torch/_tensor.py",
        "r=tensor|d=cpu",
        "Tensor:cpu Tensor:pin_memory",
    ),
    (
        "aten/src/ATen/native/Memory.cpp: pinned memory is host memory",
        "f=g|r=tensor|d=cpu",
        "Tensor:pin_memory",
    ),
    (
        "torch/nn/modules/module.py: the module itself, its tensors moved",
        "r=same|d=like",
        """
        Module:to Module:cuda Module:cpu Module:xpu Module:ipu Module:mtia Module:to_empty Module:float Module:half
        Module:double Module:bfloat16 Module:type Module:eval Module:train Module:apply Module:requires_grad_
        Module:share_memory
        """,
    ),
    (
        "torch/nn/modules/module.py: no tensor moves by these",
        "d=none",
        """
        Module:eval Module:train Module:apply Module:requires_grad_ Module:share_memory Module:float Module:half
        Module:double Module:bfloat16 Module:type
        """,
    ),
    (
        "torch/nn/modules/module.py: iterates over tensors of the module",
        "r=tensors|d=first_tensor",
        "Module:parameters Module:buffers",
    ),
    (
        "torch/nn/modules/module.py",
        "r=module|d=none",
        "Module:get_submodule nn.utils.skip_init",
    ),
    (
        "torch/nn/modules/module.py",
        "r=tensor|d=first_tensor",
        "Module:get_parameter Module:get_buffer",
    ),
    (
        "torch/nn/modules/module.py",
        "r=object|d=none",
        """
        Module:named_parameters Module:named_buffers Module:named_modules Module:named_children Module:modules
        Module:children Module:state_dict Module:load_state_dict Module:register_state_dict_pre_hook
        Module:register_load_state_dict_pre_hook Module:register_load_state_dict_post_hook Module:get_extra_state
        """,
    ),
    (
        "torch/nn/utils/rnn.py: the padded tensor on the sequence's device, the lengths on the CPU",
        "r=tensors|d=first_tensor",
        "nn.utils.rnn.pad_packed_sequence nn.utils.rnn.unpack_sequence nn.utils.rnn.unpad_sequence",
    ),
    (
        "torch/nn/utils/rnn.py",
        "r=same|d=like",
        "PackedSequence:to PackedSequence:cuda PackedSequence:cpu",
    ),
    (
        "torch/nn/utils/rnn.py: moved sequences are new objects unless nothing changes",
        "r=object",
        """
        PackedSequence:to PackedSequence:cuda PackedSequence:cpu PackedSequence:pin_memory PackedSequence:float
        PackedSequence:double PackedSequence:half PackedSequence:long PackedSequence:int PackedSequence:short
        PackedSequence:char PackedSequence:byte
        """,
    ),
    (_PYTHON, "p=x1*,x2*,p,compute_mode", "cdist"),
    (_PYTHON, "p=a*,b*,dims,out*", "tensordot"),
    (_PYTHON, "p=input*,sorted,return_inverse,return_counts,dim", "unique"),
    (
        "docstring: lengths are a list or a 1-D CPU tensor",
        "r=object|d=first_tensor|p=input*,lengths,batch_first,enforce_sorted",
        "nn.utils.rnn.pack_padded_sequence",
    ),
    (
        "torch/nn/utils/rnn.py",
        "r=object|d=first_tensor",
        "nn.utils.rnn.pack_sequence",
    ),
    (
        "torch/nn/utils/rnn.py",
        "r=tensor|d=first_tensor",
        "nn.utils.rnn.pad_sequence",
    ),
    (
        "torch/amp/grad_scaler.py",
        "r=tensor|d=first_tensor|p=outputs",
        "GradScaler:scale",
    ),
    (
        "torch/distributions/distribution.py: results live where the parameters do",
        "r=tensor|d=first_tensor",
        """
        Distribution:sample Distribution:rsample Distribution:sample_n Distribution:log_prob Distribution:cdf
        Distribution:icdf Distribution:entropy Distribution:perplexity Distribution:enumerate_support
        Transform:log_abs_det_jacobian distributions.kl_divergence
        """,
    ),
    # -- results that annotations leave open ------------------------------------------------------------------------
    (
        _PYTHON,
        "r=tensor|d=first_tensor",
        """
        block_diag cdist chain_matmul dequantize .istft sparse.sampled_addmm .norm tensordot einsum matrix_rank
        quantize_per_tensor F:softsign F:tanh F:tanhshrink F:upsample F:upsample_bilinear F:upsample_nearest
        nn.parallel.data_parallel nn.utils.get_total_norm nn.utils.clip_grad_norm nn.utils.clip_grad_norm_
        Tensor:resize Tensor:resize_as Tensor:cholesky Tensor:to_sparse_coo nn.parallel.gather cuda.comm.gather
        cuda.comm.reduce_add sparse.sum sparse.softmax sparse.log_softmax sparse.spsolve nn.grad.conv1d_input
        nn.grad.conv1d_weight nn.grad.conv2d_input nn.grad.conv2d_weight nn.grad.conv3d_input nn.grad.conv3d_weight
        Tensor:__rsub__ Tensor:__rdiv__ Tensor:__rtruediv__ Tensor:__rpow__ Tensor:__rfloordiv__ Tensor:__rmatmul__
        Tensor:__rmod__ Tensor:__eq__ Tensor:__ne__ Tensor:__lt__ Tensor:__le__ Tensor:__gt__ Tensor:__ge__
        Tensor:__rlshift__ Tensor:__rrshift__ Tensor:__rand__ Tensor:__ror__ Tensor:__rxor__ Tensor:__pos__
        Tensor:__neg__ Tensor:__abs__ Tensor:__getitem__ Tensor:__reversed__ Tensor:as_subclass Tensor:__deepcopy__
        Tensor:__ipow__ Tensor:__idiv__ special.gammainc special.gammaincc
        """,
    ),
    (
        _PYTHON,
        "r=tensors|d=first_tensor",
        """
        broadcast_tensors meshgrid align_tensors .lu Tensor:symeig Tensor:eig Tensor:lstsq Tensor:solve Tensor:qr
        symeig Tensor:__iter__ autograd.grad autograd.functional.vjp
        autograd.functional.jvp F:multi_head_attention_forward cuda.comm.broadcast cuda.comm.scatter
        cuda.comm.broadcast_coalesced cuda.comm.reduce_add_coalesced nn.parallel.scatter
        autograd.forward_ad.unpack_dual F:fractional_max_pool2d_with_indices F:fractional_max_pool3d_with_indices
        F:max_pool1d_with_indices F:max_pool2d_with_indices F:max_pool3d_with_indices
        F:adaptive_max_pool1d_with_indices F:adaptive_max_pool2d_with_indices F:adaptive_max_pool3d_with_indices
        """,
    ),
    (
        "torch/functional.py: several arguments or a sequence give a tuple",
        "r=unknown|d=first_tensor|p=*tensors",
        "atleast_1d atleast_2d atleast_3d",
    ),
    (
        "native_functions.yaml: these return lists",
        "r=tensors|d=first_tensor",
        "split_copy split_with_sizes_copy unbind_copy",
    ),
    (
        "docstring: histogram and a list of edges",
        "r=object|d=none",
        "histogramdd",
    ),
    (
        "torch/functional.py: variadic tensors",
        "p=*tensors",
        "block_diag cartesian_prod broadcast_tensors meshgrid align_tensors",
    ),
    (
        "docstring: one argument gives a tuple of index tensors",
        "r=tensor|d=first_tensor|rd=#1:tensors|p=condition*,input,other",
        "where",
    ),
    (
        "docstring: `as_tuple=True` gives a tuple",
        "r=tensor|d=first_tensor|rd=as_tuple:tensors",
        ".nonzero",
    ),
    (
        "docstring: the extra results come as a tuple",
        "r=tensor|d=first_tensor|rd=return_inverse:tensors,return_counts:tensors",
        ".unique .unique_consecutive",
    ),
    (
        "torch/nn/functional.py: boolean_dispatch on return_indices",
        "r=tensor|d=first_tensor|rd=return_indices:tensors",
        """
        F:max_pool1d F:max_pool2d F:max_pool3d F:adaptive_max_pool1d F:adaptive_max_pool2d F:adaptive_max_pool3d
        F:fractional_max_pool2d F:fractional_max_pool3d
        """,
    ),
    (
        "torch/_tensor.py: without an argument the name of the type",
        "r=tensor|d=like|rd=#0:str",
        "Tensor:type",
    ),
    (
        "torch/_tensor.py",
        "r=none|d=none",
        "Tensor:backward Tensor:__setitem__ Tensor:module_load set_printoptions",
    ),
    (
        "torch/_tensor.py",
        "r=object|d=none",
        """
        Tensor:register_hook Tensor:register_post_accumulate_grad_hook Tensor:tolist Tensor:dim_order Tensor:stride
        to_dlpack Tensor:__dlpack__ vmap func.grad func.vmap func.jacrev func.jacfwd func.hessian func.grad_and_value
        """,
    ),
    (
        "docstrings: whatever the caller's function, file or closure gives",
        "r=unknown|d=none",
        """
        load hub.load hub.load_state_dict_from_url func.functional_call nn.utils.stateless.functional_call
        utils.checkpoint.checkpoint utils.checkpoint.checkpoint_sequential Optimizer:step
        utils.data.default_collate utils.data.default_convert
        """,
    ),
    (
        "docstrings: give back the module or function that they are given, or a wrapper that behaves like it",
        "r=same|d=none",
        """
        compile jit.script jit.trace jit.freeze jit.optimize_for_inference nn.utils.weight_norm nn.utils.spectral_norm
        nn.utils.remove_weight_norm nn.utils.remove_spectral_norm nn.utils.parametrizations.weight_norm
        nn.utils.parametrizations.spectral_norm nn.utils.parametrizations.orthogonal
        nn.utils.fuse_conv_bn_eval compiler.disable compiler.compile nn.utils.parametrize.register_parametrization
        """,
    ),
    (
        "torch/_tensor.py",
        "r=bool|d=none",
        "Tensor:is_shared Tensor:__contains__",
    ),
    (
        "torch/_tensor.py",
        "r=number|d=none",
        "Tensor:__len__ Tensor:__hash__",
    ),
    (
        "torch/_tensor.py",
        "r=str|d=none",
        "Tensor:__format__ Tensor:__repr__ Tensor:storage_type",
    ),
    (
        "torch/_tensor.py",
        "r=ndarray|d=none",
        "Tensor:__array__",
    ),
    (
        "torch/jit/_script.py",
        "r=module|d=none",
        "jit.load",
    ),
    (
        "torch/cuda/__init__.py and its siblings",
        "r=none|d=none",
        """
        cuda.init cuda.ipc_collect cuda.caching_allocator_delete cuda.set_stream mtia.init mtia.set_stream
        xpu.set_stream
        """,
    ),
    (
        "torch/cuda/__init__.py and its siblings",
        "r=bool|d=none",
        """
        cuda.is_initialized cuda.is_bf16_supported xpu.is_initialized mtia.is_initialized mtia.is_bf16_supported
        backends.cuda.is_built backends.cudnn.is_available backends.cudnn.is_acceptable backends.mkl.is_available
        backends.mkldnn.is_available backends.openmp.is_available backends.nnpack.is_available
        """,
    ),
    (
        "torch/cuda/__init__.py: numbers and tables, no tensor",
        "d=none",
        "cuda.caching_allocator_alloc cuda.use_mem_pool xpu.use_mem_pool",
    ),
    # -- 0-dim ----------------------------------------------------------------------------------------------------
    (
        "docstrings: a single value",
        "z=yes",
        """
        .dot .vdot .trace .dist scalar_tensor nn.utils.clip_grad_norm_ nn.utils.get_total_norm nn.utils.clip_grad_norm
        """,
    ),
    (
        "docstrings: without `dim` one value for the whole tensor",
        "z=reduces",
        """
        .median .nanmedian .nanmean .norm linalg.norm linalg.vector_norm .sum .mean .prod .amax .amin .max .min .std
        .var .argmax .argmin .all .any .count_nonzero .nansum
        """,
    ),
    (
        "docstrings: one dimension at least",
        "z=no",
        """
        arange range eye linspace logspace randperm bartlett_window blackman_window hamming_window hann_window
        kaiser_window tril_indices triu_indices fft.fftfreq fft.rfftfreq cat concat concatenate stack hstack vstack
        dstack column_stack row_stack .mm .bmm .addmm .baddbmm .addbmm .outer .ger conv1d conv2d conv3d
        conv_transpose1d conv_transpose2d conv_transpose3d .nonzero .argwhere .unique .unique_consecutive
        .masked_select F:embedding embedding F:one_hot .flatten .ravel atleast_1d atleast_2d atleast_3d .diag_embed
        .topk meshgrid cartesian_prod combinations .bincount .histc tensordot cdist .unsqueeze F:layer_norm layer_norm
        F:batch_norm F:group_norm F:multi_head_attention_forward F:scaled_dot_product_attention F:interpolate
        nn.utils.rnn.pad_sequence from_numpy F:conv1d F:max_pool2d F:avg_pool2d multinomial Tensor:multinomial
        block_diag Tensor:__iter__
        """,
    ),
    (
        "aten/src/ATen/native: the shape of the result is that of the input",
        "z=inputs",
        """
        zeros_like ones_like full_like empty_like rand_like randn_like randint_like .clone .detach Tensor:detach_
        Tensor:contiguous Tensor:to Tensor:cpu Tensor:cuda Tensor:xpu Tensor:type Tensor:float Tensor:double
        Tensor:half Tensor:bfloat16 Tensor:int Tensor:long Tensor:short Tensor:char Tensor:byte Tensor:bool
        Tensor:type_as Tensor:requires_grad_ Tensor:pin_memory .softmax .log_softmax F:softmax F:log_softmax F:relu
        F:dropout F:gelu F:silu F:leaky_relu F:elu F:hardtanh F:sigmoid F:tanh F:softplus F:logsigmoid .nan_to_num
        .cumsum .cumprod GradScaler:scale Tensor:__neg__ Tensor:__abs__ Tensor:__invert__ Tensor:__rsub__
        Tensor:__rdiv__ Tensor:__rtruediv__ Tensor:__rpow__ Tensor:__add__ Tensor:__radd__ Tensor:__sub__
        Tensor:__mul__ Tensor:__rmul__ Tensor:__truediv__ Tensor:__div__ Tensor:__pow__ Tensor:__floordiv__
        Tensor:__mod__ Tensor:__eq__ Tensor:__ne__ Tensor:__lt__ Tensor:__le__ Tensor:__gt__ Tensor:__ge__
        Tensor:__and__ Tensor:__or__ Tensor:__xor__ Tensor:add_ Tensor:mul_ Tensor:sub_ Tensor:div_ Tensor:copy_
        Tensor:zero_ Tensor:fill_ Tensor:masked_fill_ .masked_fill Tensor:clamp_ .clamp Tensor:new_tensor where
        Tensor:where .isnan .isfinite .isinf .sign .flip
        """,
    ),
    (
        "a data argument decides the shape",
        "z=unknown",
        "Tensor:new_tensor",
    ),
    # -- waiting for the device --------------------------------------------------------------------------------------
    (
        "torch/_tensor.py and aten/src/ATen/native/Scalar.cpp: reads a value (_local_scalar_dense)",
        "s=always",
        """
        Tensor:item Tensor:tolist Tensor:__float__ Tensor:__int__ Tensor:__bool__ Tensor:__complex__ Tensor:__index__
        Tensor:__long__ Tensor:__nonzero__ Tensor:__format__ Tensor:__repr__ Tensor:__contains__ Tensor:is_nonzero
        is_nonzero .equal .allclose testing.assert_close testing.assert_allclose
        """,
    ),
    (
        "docstrings of Tensor.cpu, Tensor.numpy: the values come to the host",
        "s=always",
        "Tensor:cpu Tensor:numpy Tensor:__array__ Module:cpu PackedSequence:cpu",
    ),
    (
        "docstring of Tensor.to: depends on the direction and on non_blocking",
        "s=maybe",
        """
        Tensor:to Tensor:cuda Tensor:xpu Tensor:type Tensor:copy_ Module:to Module:cuda Module:xpu tensor as_tensor
        asarray PackedSequence:to PackedSequence:cuda Tensor:new_tensor Storage:to Storage:cuda
        """,
    ),
    (
        "native_functions.yaml, tag dynamic_output_shape; docstrings of nonzero, argwhere, unique",
        "s=always",
        ".nonzero .argwhere .unique .unique_consecutive .masked_select .bincount combinations",
    ),
    (
        "docstrings: depends on the arguments given",
        "s=maybe",
        """
        where .repeat_interleave F:one_hot normal .multinomial randperm Tensor:__getitem__ Tensor:__setitem__
        Tensor:index_put_ index_put_ .index_put nn.utils.clip_grad_norm_ nn.utils.clip_grad_norm GradScaler:step
        cuda.empty_cache accelerator.empty_cache xpu.empty_cache mps.empty_cache .masked_fill Tensor:masked_fill_
        .tensor_split linalg.lstsq .histc Optimizer:step
        """,
    ),
    (
        "run on a card under torch.cuda.set_sync_debug_mode (benchmarks/gpu)",
        "s=always",
        """
        .corrcoef .cov .istft .matrix_exp svd_lowrank pca_lowrank unravel_index .pinverse F:ctc_loss F:gaussian_nll_loss
        linalg.cond linalg.pinv linalg.tensorinv linalg.tensorsolve .cholesky
        """,
    ),
    (
        "run on a card under torch.cuda.set_sync_debug_mode (benchmarks/gpu): for some arguments",
        "s=maybe",
        """
        isin .index_fill masked.sum masked.prod masked.cumsum masked.cumprod masked.amax
        masked.amin masked.argmax masked.argmin masked.mean masked.median masked.norm masked.var masked.std
        masked.softmax masked.log_softmax masked.softmin masked.logaddexp masked.logsumexp
        """,
    ),
    (
        "torch/amp/grad_scaler.py",
        "s=always",
        "GradScaler:get_scale GradScaler:state_dict",
    ),
    (
        "docstrings: wait for all work queued",
        "s=always",
        """
        cuda.synchronize accelerator.synchronize xpu.synchronize mps.synchronize mtia.synchronize cpu.synchronize
        Stream:synchronize Event:synchronize distributed.barrier
        """,
    ),
    (
        "docstring of synchronize: nothing to wait for on the CPU",
        "s=never",
        "cpu.synchronize",
    ),
    # -- calls that raise where there is no accelerator ------------------------------------------------------------
    (
        _CPU_BUILD,
        "f=g",
        """
        accelerator.current_device_index accelerator.current_device_idx accelerator.current_stream
        accelerator.empty_cache accelerator.empty_host_cache accelerator.get_device_capability
        accelerator.get_memory_info accelerator.max_memory_allocated accelerator.max_memory_reserved
        accelerator.memory_allocated accelerator.memory_reserved accelerator.memory_stats
        accelerator.reset_accumulated_memory_stats accelerator.reset_peak_memory_stats accelerator.set_device_index
        accelerator.set_device_idx accelerator.set_stream accelerator.synchronize accelerator.device_index
        accelerator.Graph cuda.caching_allocator_alloc cuda.caching_allocator_delete cuda.can_device_access_peer
        cuda.change_current_allocator cuda.check_error cuda.clock_rate cuda.cudart cuda.current_blas_handle
        cuda.current_device cuda.current_solver_handle cuda.current_stream cuda.default_stream cuda.device_memory_used
        cuda.get_allocator_backend cuda.get_device_capability cuda.get_device_name cuda.get_device_properties
        cuda.get_per_process_memory_fraction cuda.get_rng_state cuda.get_stream_from_external cuda.get_sync_debug_mode
        cuda.graph cuda.graph_pool_handle cuda.init cuda.initial_seed cuda.ipc_collect
        cuda.is_current_stream_capturing cuda.make_graphed_callables cuda.mem_get_info cuda.memory_snapshot
        cuda.memory_summary cuda.memory_usage cuda.power_draw cuda.reset_accumulated_host_memory_stats
        cuda.reset_accumulated_memory_stats cuda.reset_max_memory_allocated cuda.reset_max_memory_cached
        cuda.reset_peak_host_memory_stats cuda.reset_peak_memory_stats cuda.set_device
        cuda.set_per_process_memory_fraction cuda.set_rng_state cuda.set_stream cuda.set_sync_debug_mode
        cuda.synchronize cuda.temperature cuda.utilization cuda.device cuda.device_of cuda.Stream cuda.ExternalStream
        cuda.Event cuda.CUDAGraph cuda.MemPool cuda.CUDAPluggableAllocator cuda.FloatTensor cuda.DoubleTensor
        cuda.HalfTensor cuda.BFloat16Tensor cuda.ByteTensor cuda.CharTensor cuda.ShortTensor cuda.IntTensor
        cuda.LongTensor cuda.BoolTensor cuda.FloatStorage cuda.DoubleStorage cuda.HalfStorage cuda.BFloat16Storage
        cuda.ByteStorage cuda.CharStorage cuda.ShortStorage cuda.IntStorage cuda.LongStorage cuda.BoolStorage
        cuda.ComplexFloatStorage cuda.ComplexDoubleStorage cuda.nvtx.range_push cuda.nvtx.range_pop cuda.nvtx.mark
        cuda.nvtx.range mps.Event mps.compile_shader mps.current_allocated_memory mps.driver_allocated_memory
        mps.empty_cache mps.get_rng_state mps.recommended_max_memory mps.seed mps.set_per_process_memory_fraction
        mps.set_rng_state mps.synchronize mps.load_metallib xpu.Event xpu.MemPool xpu.Stream xpu.XPUGraph
        xpu.can_device_access_peer xpu.change_current_allocator xpu.clock_rate xpu.current_device xpu.current_stream
        xpu.device xpu.device_of xpu.device_memory_used xpu.get_device_capability xpu.get_device_name
        xpu.get_device_properties xpu.get_per_process_memory_fraction xpu.get_rng_state xpu.get_stream_from_external
        xpu.graph xpu.graph_pool_handle xpu.init xpu.initial_seed xpu.is_current_stream_capturing
        xpu.make_graphed_callables xpu.mem_get_info xpu.memory_usage xpu.power_draw xpu.reset_accumulated_memory_stats
        xpu.reset_peak_memory_stats xpu.set_device xpu.set_per_process_memory_fraction xpu.set_rng_state
        xpu.set_stream xpu.synchronize xpu.temperature xpu.utilization mtia.MTIAGraph mtia.StreamContext
        mtia.current_device mtia.current_stream mtia.default_stream mtia.device mtia.empty_cache
        mtia.get_device_capability mtia.get_device_properties mtia.get_rng_state mtia.graph mtia.graph_pool_handle
        mtia.init mtia.initial_seed mtia.set_device mtia.set_rng_state mtia.set_stream mtia.snapshot mtia.stream
        mtia.synchronize Tensor:cuda Tensor:xpu Tensor:record_stream Module:cuda Module:xpu Module:mtia
        PackedSequence:cuda Storage:cuda Event:record Event:elapsed_time
        """,
    ),
    # -- from torch.cuda to the device-agnostic API -----------------------------------------------------------------
    (
        _MIGRATION,
        "c=U|to=torch.accelerator.is_available",
        "cuda.is_available",
    ),
    (
        _MIGRATION,
        "c=A|to=torch.accelerator.device_count",
        "cuda.device_count",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.current_device_index",
        "cuda.current_device",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.set_device_index",
        "cuda.set_device",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.device_index",
        "cuda.device",
    ),
    (
        _MIGRATION,
        "c=N",
        "cuda.device_of cuda.default_stream cuda.ExternalStream cuda.get_stream_from_external cuda.GreenContext",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.synchronize",
        "cuda.synchronize xpu.synchronize mps.synchronize mtia.synchronize",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.current_stream",
        "cuda.current_stream xpu.current_stream mtia.current_stream",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.set_stream",
        "cuda.set_stream xpu.set_stream mtia.set_stream",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.Stream",
        "cuda.Stream xpu.Stream mtia.Stream",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.Stream",
        "cuda.stream cuda.StreamContext xpu.stream xpu.StreamContext",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.Event",
        "cuda.Event xpu.Event mps.Event mtia.Event",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.empty_cache",
        "cuda.empty_cache xpu.empty_cache mps.empty_cache mtia.empty_cache",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.memory_allocated",
        "cuda.memory_allocated xpu.memory_allocated mtia.memory_allocated",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.max_memory_allocated",
        "cuda.max_memory_allocated xpu.max_memory_allocated mtia.max_memory_allocated",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.memory_reserved",
        "cuda.memory_reserved xpu.memory_reserved",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.max_memory_reserved",
        "cuda.max_memory_reserved xpu.max_memory_reserved",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.memory_stats",
        "cuda.memory_stats xpu.memory_stats mtia.memory_stats",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.reset_peak_memory_stats",
        "cuda.reset_peak_memory_stats xpu.reset_peak_memory_stats mtia.reset_peak_memory_stats",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.reset_accumulated_memory_stats",
        "cuda.reset_accumulated_memory_stats xpu.reset_accumulated_memory_stats",
    ),
    (
        _MIGRATION,
        "c=G|to=torch.accelerator.get_memory_info",
        "cuda.mem_get_info xpu.mem_get_info",
    ),
    (
        "torch/cuda/memory.py: warns with FutureWarning",
        "c=D|!=2.2|to=torch.cuda.reset_peak_memory_stats",
        "cuda.reset_max_memory_allocated cuda.reset_max_memory_cached",
    ),
    (
        "torch/cuda/memory.py: deprecated names of the same figure, with FutureWarning already in 2.2",
        "c=D|!=2.2|to=torch.cuda.memory_reserved",
        "cuda.memory_cached",
    ),
    (
        "torch/cuda/memory.py: deprecated names of the same figure, with FutureWarning already in 2.2",
        "c=D|!=2.2|to=torch.cuda.max_memory_reserved",
        "cuda.max_memory_cached",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.manual_seed",
        "cuda.manual_seed cuda.manual_seed_all xpu.manual_seed xpu.manual_seed_all mps.manual_seed",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.seed",
        "cuda.seed cuda.seed_all xpu.seed xpu.seed_all mps.seed",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.initial_seed",
        "cuda.initial_seed",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.random.fork_rng",
        "cuda.get_rng_state cuda.set_rng_state cuda.get_rng_state_all cuda.set_rng_state_all",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.get_device_module",
        "cuda.is_initialized",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.accelerator.get_device_capability",
        "cuda.is_bf16_supported",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.profiler.record_function",
        "cuda.nvtx.range cuda.nvtx.range_push cuda.nvtx.range_pop cuda.nvtx.mark",
    ),
    (
        _MIGRATION,
        "c=U|to=torch.accelerator.Graph",
        "cuda.CUDAGraph cuda.graph",
    ),
    (
        _MIGRATION,
        "c=A|to=torch.OutOfMemoryError",
        "cuda.OutOfMemoryError",
    ),
    (
        _MIGRATION,
        "c=N",
        """
        cuda.memory_stats_as_nested_dict cuda.memory_summary cuda.memory_snapshot cuda.memory_usage
        cuda.device_memory_used cuda.list_gpu_processes cuda.host_memory_stats cuda.host_memory_stats_as_nested_dict
        cuda.reset_accumulated_host_memory_stats cuda.reset_peak_host_memory_stats
        cuda.set_per_process_memory_fraction cuda.get_per_process_memory_fraction cuda.caching_allocator_alloc
        cuda.caching_allocator_delete cuda.CUDAPluggableAllocator cuda.change_current_allocator
        cuda.get_allocator_backend cuda.MemPool cuda.use_mem_pool cuda.ipc_collect cuda.init cuda.get_device_name
        cuda.get_device_properties cuda.get_device_capability cuda.is_tf32_supported cuda.get_arch_list
        cuda.get_gencode_flags cuda.can_device_access_peer cuda.utilization cuda.temperature cuda.power_draw
        cuda.clock_rate cuda.graph_pool_handle cuda.make_graphed_callables cuda.is_current_stream_capturing
        cuda.set_sync_debug_mode cuda.get_sync_debug_mode cuda.cudart cuda.check_error cuda.current_blas_handle
        cuda.current_solver_handle
        """,
    ),
    (
        "torch/cuda/amp/autocast_mode.py: first argument becomes device_type",
        "c=D",
        """
        cuda.amp.custom_fwd cuda.amp.custom_bwd cuda.amp.autocast cuda.amp.GradScaler cpu.amp.autocast
        cpu.amp.GradScaler
        """,
    ),
    (
        "torch/accelerator/__init__.py: @deprecated names the replacement",
        "c=D|to=torch.accelerator.current_device_index",
        "accelerator.current_device_idx",
    ),
    (
        "torch/accelerator/__init__.py: @deprecated names the replacement",
        "c=D|to=torch.accelerator.set_device_index",
        "accelerator.set_device_idx",
    ),
    (
        "docstring: deprecated as of 2.1",
        "c=D|!=2.2|to=torch.set_default_device",
        "set_default_tensor_type",
    ),
    (
        "docstring: constructor of old tensor types, by data or by sizes",
        "c=U|to=torch.tensor|r=tensor|d=none",
        """
        cuda.FloatTensor cuda.DoubleTensor cuda.HalfTensor cuda.BFloat16Tensor cuda.ByteTensor cuda.CharTensor
        cuda.ShortTensor cuda.IntTensor cuda.LongTensor cuda.BoolTensor
        """,
    ),
    (
        "torch/csrc/tensor/python_tensor.cpp: always host memory, whatever the default device",
        "r=tensor|d=cpu|p=*args",
        """
        Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor
        LongTensor BoolTensor
        """,
    ),
    (
        "torch/nn/parameter.py: the tensor itself, registered when assigned",
        "r=tensor|d=first_tensor|p=data*,requires_grad",
        "nn.Parameter",
    ),
    (
        "torch/nn/parameter.py",
        "r=tensor|d=first_tensor|p=data*,persistent",
        "nn.Buffer",
    ),
    # -- drawing random numbers -------------------------------------------------------------------------------------
    (
        "native_functions.yaml, argument generator",
        "f=r",
        """
        Tensor:uniform_ Tensor:normal_ Tensor:random_ Tensor:exponential_ Tensor:cauchy_ Tensor:geometric_
        Tensor:log_normal_ Tensor:bernoulli_ .bernoulli .multinomial F:dropout F:dropout1d F:dropout2d F:dropout3d
        F:gumbel_softmax Distribution:sample Distribution:rsample Distribution:sample_n
        """,
    ),
)

# Names that a module gets from compiled code at run time, so that no file shows them. Source: dir() on torch 2.13.
EXTRA_NAMES: dict[str, str] = {
    "torch.cuda": """
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor
        BoolTensor sparse
    """,
    "torch.sparse": """
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor
    """,
    "torch.cuda.sparse": """
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor LongTensor
    """,
    "torch": """
        Storage FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor IntTensor
        LongTensor BoolTensor AVG ArgumentSpec Capsule Code CompleteArgumentSpec DeepCopyMemoTable
        ExcludeDispatchKeyGuard ExecutionPlan FatalError Gradient OperatorInfo PyObjectType SUM ScriptClass
        ScriptClassFunction ScriptDictIterator ScriptDictKeyIterator ScriptListIterator ScriptObjectProperty
        StaticModule bit cpp get_autocast_ipu_dtype get_autocast_xla_dtype int1 int2 int3 int4 int5 int6 int7
        is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_ipu_dtype set_autocast_ipu_enabled
        set_autocast_xla_dtype set_autocast_xla_enabled uint1 uint2 uint3 uint4 uint5 uint6 uint7
        autocast_increment_nesting autocast_decrement_nesting clear_autocast_cache is_autocast_cache_enabled
        set_autocast_cache_enabled get_autocast_dtype set_autocast_dtype
    """,
    "torch.backends": "m",
    "torch.backends.cudnn": "m",
    "torch.backends.cudnn.rnn": "m",
    "torch.backends.miopen": "m",
    "torch.backends.mkldnn": "m",
    "torch.backends.opt_einsum": "m",
    "torch.backends.quantized": "m",
    "torch.backends.xnnpack": "m",
    "torch.monitor": "COUNT MAX MEAN MIN SUM VALUE data_value_t",
}

# Modules that replace themselves by an object with more names. Sources: torch/backends/python_native/__init__.py, and
# torch/utils/_config_module.py for those that end with `install_config_module(sys.modules[__name__])`.
OPEN = frozenset(
    {
        "torch.backends.python_native", "torch.compiler.config", "torch.distributed.config",
        "torch.fx.experimental._config", "torch.utils.serialization.config",
    }
)  # fmt: skip

# What attributes hold where no annotation says so: (family, name) to a word of Function.result.
ATTRIBUTES: dict[tuple[str, str], str] = {
    ("Tensor", "grad"): "tensor",
    ("Tensor", "data"): "tensor",
    ("Tensor", "names"): "object",
    ("PackedSequence", "data"): "tensor",
    ("PackedSequence", "batch_sizes"): "tensor",
    ("PackedSequence", "sorted_indices"): "tensor",
    ("PackedSequence", "unsorted_indices"): "tensor",
    ("PackedSequence", "is_cuda"): "bool",
    ("Module", "training"): "bool",
    ("Generator", "device"): "device",
    ("Storage", "device"): "device",
    ("device", "type"): "str",
    ("device", "index"): "number",
    ("Distribution", "mean"): "tensor",
    ("Distribution", "mode"): "tensor",
    ("Distribution", "variance"): "tensor",
    ("Distribution", "stddev"): "tensor",
    ("Distribution", "batch_shape"): "size",
    ("Distribution", "event_shape"): "size",
}

# Members that named tuples and C types bring in, for families whose class body does not show them.
EXTRA_MEMBERS: dict[str, str] = {
    "torch.nn.utils.rnn.PackedSequence": "data batch_sizes sorted_indices unsorted_indices count index",
    "torch.Tensor": "is_xla name volatile",
    "torch.UntypedStorage": "fill_",
    "torch.Stream": "native_handle",
}

# Methods that the compiled class has and its stub lacks. Source: dir() on torch 2.13.
EXTRA_METHODS: dict[str, str] = {
    "Tensor": "cdouble cfloat const_data_ptr ipu mtia __delitem__ __ipow__ __itruediv__ __pos__",
}


@cache
def patches() -> dict[str, list[tuple[str, str]]]:
    """Per key (`torch.zeros` or `Tensor:item`): the (source, fields) to lay over the generated record, in order."""
    table: dict[str, list[tuple[str, str]]] = {}
    for source, fields, names in GROUPS:
        for name in names.split():
            if name.startswith("."):
                keys = [f"torch.{name[1:]}", f"Tensor:{name[1:]}"]
            elif ":" in name and not name.startswith("F:"):
                keys = [name]
            else:
                keys = ["torch." + name.replace("F:", "nn.functional.")]
            for key in keys:
                table.setdefault(key, []).append((source, fields))
    return table


def refine_function(qualname: str, record: Function | None) -> Function | None:
    """Lay the annotations over a generated record; a name that only the annotations know gets a record of its own."""
    for source, fields in patches().get(qualname, ()):
        record = patch_function(record or Function(qualname), fields, source)
    return record


def refine_method(family: str, name: str, record: Function | None) -> Function | None:
    """As `refine_function`, for methods; annotations of methods that the family lacks are not applied."""
    if record is None:
        if name not in EXTRA_METHODS.get(family, "").split():
            return None
        record = Function(f"torch.{family}.{name}", "tensor", "first_tensor")
    for source, fields in patches().get(f"{family}:{name}", ()):
        record = patch_function(record, fields, source)
    return record


def refine_class(record: Class) -> Class:
    """Add the members that the class body does not show."""
    extra = EXTRA_MEMBERS.get(record.qualname)
    if extra is not None:
        record = record._replace(attributes=record.attributes | (frozenset(extra.split()) - record.methods))
    if record.qualname == "torch.Tensor":
        record = record._replace(methods=record.methods | frozenset(EXTRA_METHODS["Tensor"].split()))
    return record
