"""Ten steps of each scheduler on a fixed model."""
# uses: diffusers

import torch
from diffusers import (
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
)

device = "cuda" if torch.cuda.is_available() else "cpu"
for kind in (
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
):
    torch.manual_seed(0)
    scheduler = kind(num_train_timesteps=100)
    scheduler.set_timesteps(10, device=device)
    sample = torch.randn(1, 3, 4, 4).to(device) * scheduler.init_noise_sigma
    for step in scheduler.timesteps:
        sample = scheduler.step(0.1 * scheduler.scale_model_input(sample, step), step, sample).prev_sample
    assert sample.device.type == device
    print("=", kind.__name__, [round(float(each), 4) for each in sample.flatten()[:6].cpu()])
