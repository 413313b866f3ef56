"""What libraries around torch do with tensors: which read host memory, which move things, what they return.

Each group names its source. `host_only` calls turn their argument into a numpy array, which torch refuses for a tensor
on an accelerator ("can't convert cuda:0 device type tensor to numpy").
"""

from __future__ import annotations

import re
from functools import cache

from devlint.knowledge.records import Class, Function, patch_function

_NUMPY = "numpy 2.4.6 given a torch 2.13 tensor without host memory: raises, while the same call on a CPU tensor works"
_CONVERTS = "documentation: arguments are array-like, converted by numpy.asarray"

# (source, fields, prefix, names below the prefix)
GROUPS: tuple[tuple[str, str, str, str], ...] = (
    (
        _NUMPY,
        "r=ndarray|d=none|f=h",
        "numpy",
        """
        angle append array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray atleast_1d atleast_2d
        atleast_3d column_stack copy corrcoef cov cross diag diagonal diff dot dstack ediff1d empty_like expand_dims
        extract flatnonzero fliplr flipud from_dlpack full_like histogram_bin_edges hstack i0 inner intersect1d
        isclose iscomplex isin kron matrix_transpose nan_to_num nancumprod nancumsum ones_like outer pad partition
        poly polyadd polysub polyval ravel real_if_close resize roll rot90 row_stack setdiff1d setxor1d sinc sort
        sort_complex stack tensordot tile trapezoid tril triu union1d unique unique_values unwrap vstack zeros_like
        linalg.cross linalg.diagonal linalg.eigvals linalg.eigvalsh linalg.matrix_power linalg.matrix_transpose
        linalg.svdvals linalg.tensordot fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn
        fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn asmatrix concatenate
        concat linalg.outer linalg.multi_dot random.permutation random.choice
        """,
    ),
    # Of a CPU tensor these make a tensor again (Tensor.__array_wrap__), of arrays an array.
    (
        _NUMPY,
        "r=unknown|d=none|f=h",
        "numpy",
        """
        abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition
        argsort argwhere around asin asinh atan atan2 atanh cbrt ceil clip conj conjugate copysign cos cosh cumprod
        cumsum deg2rad degrees delete diagflat divide equal exp exp2 expm1 fabs fix float_power floor floor_divide
        fmax fmin fmod greater greater_equal heaviside hypot insert isfinite isinf isnan isneginf isposinf ldexp less
        less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul
        matvec maximum minimum mod multiply negative nextafter not_equal permute_dims positive pow power ptp
        rad2deg radians reciprocal remainder repeat rint round sign signbit sin sinh spacing sqrt square subtract take
        tan tanh transpose trim_zeros true_divide trunc vecdot vecmat linalg.matmul linalg.pinv linalg.vecdot linalg.inv
        linalg.cholesky
        """,
    ),
    (
        _NUMPY,
        "r=object|d=none|f=h",
        "numpy",
        """
        average median nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar
        percentile quantile trace vdot linalg.cond linalg.det linalg.matrix_norm linalg.norm linalg.trace
        linalg.vector_norm broadcast_arrays divmod frexp gradient histogram histogramdd meshgrid modf where
        linalg.lstsq count_nonzero nanargmax nanargmin linalg.matrix_rank unique_all unique_counts unique_inverse
        linalg.eig linalg.eigh linalg.qr linalg.slogdet linalg.svd linalg.solve digitize searchsorted bincount interp
        """,
    ),
    (
        _NUMPY,
        "r=bool|d=none|f=h",
        "numpy",
        "allclose iscomplexobj isrealobj may_share_memory shares_memory",
    ),
    (
        _NUMPY,
        "r=none|d=none|f=h",
        "numpy",
        """
        save savetxt savez savez_compressed testing.assert_allclose testing.assert_array_almost_equal
        testing.assert_array_equal testing.assert_array_less testing.assert_array_max_ulp testing.assert_equal
        testing.assert_almost_equal
        """,
    ),
    (
        "numpy documentation: made from shapes and numbers",
        "r=ndarray|d=none",
        "numpy",
        """
        zeros ones empty full arange linspace logspace geomspace eye identity load loadtxt genfromtxt fromfile
        frombuffer fromiter fromstring tri tril_indices triu_indices random.rand random.randn random.randint
        random.random random.normal random.uniform random.random_sample random.standard_normal indices memmap
        """,
    ),
    (
        "numpy 2.4.6 given a torch 2.13 tensor: calls the tensor's own method or attribute, which may fail "
        "for other reasons",
        "r=unknown|d=none",
        "numpy",
        """
        mean sum max min std var prod any all amax amin shape size ndim real squeeze swapaxes split array_split hsplit
        vsplit reshape nonzero
        """,
    ),
    (
        "matplotlib documentation: array-like, converted by numpy (matplotlib.cbook)",
        "r=object|d=none|f=h",
        "matplotlib.pyplot",
        """
        plot scatter bar barh hist hist2d imshow matshow contour contourf pcolor pcolormesh fill_between errorbar stem
        step boxplot violinplot semilogx semilogy loglog pie quiver stackplot hexbin imsave specgram spy eventplot
        vlines hlines streamplot tripcolor
        """,
    ),
    (
        "matplotlib documentation: array-like, converted by numpy (matplotlib.cbook)",
        "r=object|d=none|f=h",
        "matplotlib.axes.Axes",
        """
        plot scatter bar barh hist hist2d imshow matshow contour contourf pcolor pcolormesh fill_between errorbar stem
        step boxplot violinplot semilogx semilogy loglog pie quiver hexbin
        """,
    ),
    (
        "seaborn documentation: array-like",
        "r=object|d=none|f=h",
        "seaborn",
        "heatmap lineplot scatterplot histplot kdeplot barplot boxplot violinplot displot distplot regplot",
    ),
    (
        "scikit-learn documentation: array-like, checked by sklearn.utils.check_array",
        "r=unknown|d=none|f=h",
        "sklearn",
        """
        metrics.accuracy_score metrics.f1_score metrics.precision_score metrics.recall_score metrics.roc_auc_score
        metrics.confusion_matrix metrics.classification_report metrics.mean_squared_error metrics.mean_absolute_error
        metrics.r2_score metrics.average_precision_score metrics.precision_recall_curve metrics.roc_curve metrics.auc
        metrics.log_loss metrics.balanced_accuracy_score metrics.matthews_corrcoef metrics.cohen_kappa_score
        metrics.precision_recall_fscore_support metrics.jaccard_score metrics.silhouette_score
        metrics.normalized_mutual_info_score metrics.adjusted_rand_score metrics.top_k_accuracy_score
        metrics.pairwise.cosine_similarity metrics.pairwise_distances metrics.mean_absolute_percentage_error
        preprocessing.normalize preprocessing.label_binarize preprocessing.scale
        utils.shuffle utils.check_array utils.class_weight.compute_class_weight manifold.trustworthiness
        """,
    ),
    (
        _CONVERTS,
        "r=unknown|d=none|f=h",
        "scipy",
        """
        stats.pearsonr stats.spearmanr stats.kendalltau stats.ttest_ind stats.norm.pdf stats.entropy special.softmax
        special.logsumexp special.expit linalg.sqrtm linalg.norm linalg.svd linalg.eigh linalg.inv linalg.expm
        optimize.linear_sum_assignment signal.convolve signal.resample signal.find_peaks spatial.distance.cdist
        spatial.distance.cosine spatial.distance.pdist ndimage.zoom ndimage.gaussian_filter ndimage.label io.savemat
        io.wavfile.write
        """,
    ),
    (
        "scipy/sparse/_coo.py, _compressed.py: numpy converts the values, and the indices beside them",
        "r=object|d=none|f=h",
        "scipy.sparse",
        """
        coo_matrix csr_matrix csc_matrix bsr_matrix dia_matrix lil_matrix coo_array csr_array csc_array bsr_array
        dia_array lil_array
        """,
    ),
    (
        "pandas documentation: converted by numpy",
        "r=object|d=none|f=h",
        "pandas",
        "DataFrame Series Index cut qcut unique factorize",
    ),
    (
        "OpenCV documentation: numpy arrays alone",
        "r=ndarray|d=none|f=h",
        "cv2",
        """
        imwrite imshow resize cvtColor rectangle line circle putText GaussianBlur warpAffine warpPerspective flip
        rotate threshold Canny addWeighted drawContours polylines applyColorMap normalize blur medianBlur dilate erode
        findContours fillPoly remap copyMakeBorder
        """,
    ),
    (
        "OpenCV documentation",
        "r=ndarray|d=none",
        "cv2",
        "imread imdecode",
    ),
    (
        "Pillow documentation: Image.fromarray reads __array_interface__, so it needs numpy arrays",
        "r=object|d=none|f=h",
        "PIL.Image",
        "fromarray",
    ),
    (
        "imageio documentation: array-like",
        "r=none|d=none|f=h",
        "imageio",
        "imwrite imsave mimsave mimwrite v2.imwrite v3.imwrite",
    ),
    (
        "soundfile documentation: array-like",
        "r=none|d=none|f=h",
        "soundfile",
        "write",
    ),
    (
        "librosa documentation: numpy arrays",
        "r=ndarray|d=none|f=h",
        "librosa",
        "stft istft feature.melspectrogram feature.mfcc power_to_db amplitude_to_db resample display.specshow",
    ),
    (
        "skimage documentation: array-like",
        "r=unknown|d=none|f=h",
        "skimage",
        """
        io.imsave metrics.structural_similarity metrics.peak_signal_noise_ratio transform.resize measure.label
        measure.compare_ssim measure.compare_psnr
        """,
    ),
    # -- torchvision -------------------------------------------------------------------------------------------------
    (
        "torchvision/transforms/functional.py and documentation: PIL images and arrays become CPU tensors",
        "r=tensor|d=cpu",
        "torchvision.transforms.functional",
        "to_tensor pil_to_tensor",
    ),
    (
        "torchvision/io documentation: decoded into host memory",
        "r=tensor|d=cpu",
        "torchvision.io",
        "read_image decode_image read_file decode_png",
    ),
    (
        "torchvision/io documentation: expects CPU tensors",
        "r=unknown|d=none|f=h",
        "torchvision.io",
        "write_png write_file encode_png write_video",
    ),
    (
        "torchvision/transforms/functional.py: moves the picture to the CPU itself",
        "r=object|d=none|s=always",
        "torchvision.transforms.functional",
        "to_pil_image",
    ),
    (
        "torchvision/transforms/functional.py: computed on the tensor's device",
        "r=tensor|d=first_tensor|p=img",
        "torchvision.transforms.functional",
        """
        normalize resize crop center_crop pad hflip vflip rotate affine perspective adjust_brightness adjust_contrast
        adjust_saturation adjust_hue adjust_gamma gaussian_blur rgb_to_grayscale erase convert_image_dtype invert
        posterize solarize equalize resized_crop
        """,
    ),
    (
        "torchvision/utils.py: on the device of the images",
        "r=tensor|d=first_tensor|p=tensor",
        "torchvision.utils",
        "make_grid",
    ),
    (
        "torchvision/utils.py: copies to the CPU itself before it writes",
        "r=none|d=none|s=always",
        "torchvision.utils",
        "save_image",
    ),
    (
        "torchvision/utils.py: on the device of the image",
        "r=tensor|d=first_tensor|p=image",
        "torchvision.utils",
        "draw_bounding_boxes draw_segmentation_masks draw_keypoints",
    ),
    (
        "torchvision/csrc/ops/cuda/nms_kernel.cu: boxes and scores on one device",
        "r=tensor|d=first_tensor|m=e|p=boxes*,scores*",
        "torchvision.ops",
        "nms",
    ),
    (
        "torchvision/ops: boxes on one device",
        "r=tensor|d=first_tensor|m=e|p=boxes*,scores*,idxs*",
        "torchvision.ops",
        "batched_nms",
    ),
    (
        "torchvision/ops/boxes.py",
        "r=tensor|d=first_tensor|m=e|p=boxes1*,boxes2*",
        "torchvision.ops",
        "box_iou generalized_box_iou distance_box_iou complete_box_iou",
    ),
    (
        "torchvision/ops",
        "r=tensor|d=first_tensor|m=e|p=input*",
        "torchvision.ops",
        """
        roi_align roi_pool ps_roi_align ps_roi_pool deform_conv2d box_area box_convert clip_boxes_to_image
        sigmoid_focal_loss stochastic_depth drop_block2d
        """,
    ),
    (
        "torchvision/models: built on the CPU or the default device, like any module",
        "r=module|d=none",
        "torchvision.models",
        """
        resnet18 resnet34 resnet50 resnet101 resnet152 vgg11 vgg13 vgg16 vgg19 vgg16_bn vgg19_bn alexnet densenet121
        densenet161 densenet169 densenet201 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large efficientnet_b0
        efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_v2_s inception_v3 googlenet
        squeezenet1_0 squeezenet1_1 shufflenet_v2_x1_0 mnasnet1_0 regnet_y_400mf convnext_tiny convnext_small
        convnext_base vit_b_16 vit_b_32 vit_l_16 swin_t swin_s swin_b wide_resnet50_2 resnext50_32x4d resnext101_32x8d
        get_model segmentation.fcn_resnet50 segmentation.deeplabv3_resnet50 segmentation.deeplabv3_resnet101
        detection.fasterrcnn_resnet50_fpn detection.maskrcnn_resnet50_fpn detection.retinanet_resnet50_fpn
        detection.ssd300_vgg16 detection.keypointrcnn_resnet50_fpn video.r3d_18
        """,
    ),
    # -- torchaudio ------------------------------------------------------------------------------------------------
    (
        "torchaudio documentation: decoded into host memory",
        "r=tensors|d=cpu",
        "torchaudio",
        "load",
    ),
    (
        "torchaudio documentation: expects a CPU tensor",
        "r=none|d=none|f=h",
        "torchaudio",
        "save",
    ),
    (
        "torchaudio/functional: computed on the waveform's device",
        "r=tensor|d=first_tensor|p=waveform",
        "torchaudio.functional",
        """
        resample spectrogram lowpass_biquad highpass_biquad gain amplitude_to_DB mel_scale vad melscale_fbanks
        apply_codec phase_vocoder mask_along_axis compute_deltas
        """,
    ),
    # -- transformers, accelerate, lightning, ignite, timm -----------------------------------------------------------
    (
        "timm documentation: a module on the CPU or the default device",
        "r=module|d=none",
        "timm",
        "create_model",
    ),
    (
        "timm documentation: a module on the CPU or the default device",
        "r=module|d=none",
        "timm.models",
        "create_model",
    ),
    (
        "transformers documentation: weights on the CPU unless device_map is given",
        "r=module|d=none",
        "transformers",
        """
        AutoModel.from_pretrained AutoModelForCausalLM.from_pretrained
        AutoModelForSequenceClassification.from_pretrained AutoModelForTokenClassification.from_pretrained
        AutoModelForQuestionAnswering.from_pretrained AutoModelForSeq2SeqLM.from_pretrained
        AutoModelForMaskedLM.from_pretrained BertModel.from_pretrained AutoModelForImageClassification.from_pretrained
        GPT2LMHeadModel.from_pretrained T5ForConditionalGeneration.from_pretrained
        BertForSequenceClassification.from_pretrained CLIPModel.from_pretrained ViTModel.from_pretrained
        RobertaModel.from_pretrained DistilBertModel.from_pretrained LlamaForCausalLM.from_pretrained
        PreTrainedModel.from_pretrained
        """,
    ),
    (
        "transformers documentation: tokenizers return CPU tensors, in a BatchEncoding that has .to",
        "r=object|d=cpu",
        "transformers",
        "AutoTokenizer.from_pretrained AutoProcessor.from_pretrained",
    ),
    (
        "transformers documentation: draws from every generator, no tensor",
        "r=none|d=none",
        "transformers",
        "set_seed",
    ),
    (
        "transformers documentation: places the model itself",
        "r=object|d=none|f=m",
        "transformers",
        "pipeline Trainer",
    ),
    (
        "accelerate documentation: models, optimizers and loaders come back placed on accelerator.device",
        "r=unknown|d=none|f=m",
        "accelerate",
        """
        Accelerator.prepare Accelerator.prepare_model Accelerator.prepare_data_loader Accelerator.prepare_optimizer
        Accelerator.gather Accelerator.gather_for_metrics Accelerator.reduce dispatch_model cpu_offload
        load_checkpoint_and_dispatch utils.send_to_device
        """,
    ),
    (
        "lightning documentation: the trainer moves module and batches",
        "r=none|d=none|f=m",
        "lightning",
        "Trainer.fit Trainer.validate Trainer.test Trainer.predict pytorch.Trainer.fit",
    ),
    (
        "lightning documentation: Fabric places what it sets up",
        "r=unknown|d=none|f=m",
        "lightning",
        """
        Fabric.setup Fabric.setup_module Fabric.setup_dataloaders Fabric.to_device fabric.Fabric.setup
        fabric.Fabric.setup_dataloaders fabric.Fabric.to_device
        """,
    ),
    (
        "ignite documentation: engines move batches to `device`",
        "r=object|d=none|f=m",
        "ignite.engine",
        "create_supervised_trainer create_supervised_evaluator",
    ),
    (
        "ignite documentation: moves tensors in collections",
        "r=unknown|d=none|f=m",
        "ignite.utils",
        "convert_tensor",
    ),
    (
        "ignite documentation: the device of this process",
        "r=device|d=none",
        "ignite.distributed",
        "device",
    ),
    (
        "ignite documentation: modules, optimizers and loaders come back placed",
        "r=unknown|d=none|f=m",
        "ignite.distributed",
        "auto_model auto_optim auto_dataloader",
    ),
    (
        "torchmetrics/functional: inputs on one device",
        "r=tensor|d=first_tensor|m=e|p=preds*,target*",
        "torchmetrics.functional",
        """
        accuracy f1_score precision recall auroc average_precision confusion_matrix mean_squared_error
        mean_absolute_error peak_signal_noise_ratio structural_similarity_index_measure jaccard_index
        cosine_similarity r2_score
        """,
    ),
    (
        "torchmetrics/utilities/data.py: one tensor of a list of them",
        "r=tensor|d=first_tensor|p=x+",
        "torchmetrics.utilities.data",
        "dim_zero_cat",
    ),
    (
        "einops documentation: a tensor of the same backend and device",
        "r=tensor|d=first_tensor|p=tensor",
        "einops",
        "rearrange reduce repeat",
    ),
    (
        "einops documentation",
        "r=tensor|d=first_tensor|m=e",
        "einops",
        "einsum",
    ),
)

# Libraries all of whose other functions read host memory: (prefix, source).
HOST_LIBRARIES: tuple[tuple[str, str], ...] = (
    ("sklearn.metrics", "scikit-learn documentation: array-like, checked by sklearn.utils.check_array"),
    ("cv2", "OpenCV documentation: numpy arrays alone"),
)

# Classes that are modules or behave like them: qualname to (bases, extra attributes, source).
CLASSES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "torchmetrics.Metric": (("torch.nn.Module",), "device metric_state", "torchmetrics/metric.py"),
    "torchmetrics.MetricCollection": (("torch.nn.ModuleDict",), "", "torchmetrics/collections.py"),
    "lightning.LightningModule": (("torch.nn.Module",), "device dtype", "lightning/fabric/utilities"),
    "lightning.pytorch.LightningModule": (("lightning.LightningModule",), "", "lightning/pytorch/__init__.py"),
    "pytorch_lightning.LightningModule": (("lightning.LightningModule",), "", "pytorch_lightning/__init__.py"),
    "lightning.LightningDataModule": ((), "", "lightning/pytorch/core/datamodule.py"),
    "transformers.PreTrainedModel": (("torch.nn.Module",), "device dtype", "transformers/modeling_utils.py"),
    "torchvision.transforms.v2.Transform": (("torch.nn.Module",), "", "torchvision/transforms/v2/_transform.py"),
    "ignite.metrics.Metric": ((), "device", "ignite/metrics/metric.py"),
    "timm.data.Mixup": ((), "", "timm/data/mixup.py"),
}  # fmt: skip

_ALIASES = {
    "pytorch_lightning": "lightning",
    "lightning.pytorch": "lightning",
    "torchvision.transforms.v2.functional": "torchvision.transforms.functional",
}

#: Classes of models by the naming of these packages: `T5EncoderModel`, `BertForMaskedLM`, `CLIPVisionModelWithProjection`,
#: `UNet2DConditionModel`, `AutoencoderKL`; those of TensorFlow and Flax begin with that.
_LOADED = "transformers and diffusers documentation: weights on the CPU unless device_map is given"
_PRETRAINED = re.compile(
    r"(transformers|pytorch_transformers|pytorch_pretrained_bert|diffusers)\.(\w+\.)*(?!TF[A-Z]|Flax)"
    r"([A-Z]\w*Model((With|For)[A-Z]\w*)?|[A-Z]\w*[a-z0-9T]For[A-Z]\w*|Autoencoder(KL|Tiny)\w*)\.from_(pretrained|config)"
)


@cache
def _table() -> dict[str, tuple[str, str]]:
    return {f"{prefix}.{name}": (source, fields) for source, fields, prefix, names in GROUPS for name in names.split()}


def _home(qualname: str) -> str:
    for alias, real in sorted(_ALIASES.items(), reverse=True):
        if qualname.startswith(alias + "."):
            return real + qualname[len(alias) :]
    return qualname


@cache
def function(qualname: str) -> Function | None:
    """The record of a function of another library; None when nothing is known of it."""
    home = _home(qualname)
    found = _table().get(qualname) or _table().get(home)
    if found is not None:
        source, fields = found
        return patch_function(Function(home), fields, source)
    if _PRETRAINED.fullmatch(qualname) is not None:
        return patch_function(Function(qualname), "r=module|d=none", _LOADED)
    for prefix, source in HOST_LIBRARIES:
        if home.startswith(prefix + "."):
            return Function(home, host_only=True, note=source)
    return None


@cache
def cls(qualname: str) -> Class | None:
    """The record of a class of another library that stands for a torch object; None when nothing is known of it."""
    found = CLASSES.get(qualname) or CLASSES.get(_home(qualname))
    if found is None:
        return None
    from devlint.knowledge import query

    bases, attributes, _ = found
    record = Class(qualname, bases=bases, attributes=frozenset(attributes.split()))
    for name in bases:
        base = query.cls(name)
        if base is not None:
            record = record._replace(
                family=base.family,
                methods=record.methods | base.methods,
                attributes=record.attributes | base.attributes,
            )
    return record


@cache
def is_known_package(root: str) -> bool:
    """Whether a top-level package is torch or one of the public libraries that something is known of here."""
    named = [prefix for _, _, prefix, _ in GROUPS] + [prefix for prefix, _ in HOST_LIBRARIES] + list(CLASSES)
    return root in {"torch", "diffusers", *(name.partition(".")[0] for name in named)}
