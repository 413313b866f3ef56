"""LoRA on a small model: training, merging."""
# uses: peft transformers

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
small = {"vocab_size": 60, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}
base = LlamaForCausalLM(LlamaConfig(**small))
model = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)).to(device)
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=0.05)
ids = torch.arange(14, device=device).view(2, 7)
for step in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("= loss", step, round(loss.item(), 4))
merged = model.merge_and_unload()
logits = merged(ids).logits
assert logits.device.type == device
print("= merged", [round(float(each), 4) for each in logits.flatten()[:8].cpu()])
