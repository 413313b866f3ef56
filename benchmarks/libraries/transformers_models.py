"""Training steps, greedy generation and the Trainer of small models."""
# uses: transformers accelerate

import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

device = "cuda" if torch.cuda.is_available() else "cpu"
small = {"vocab_size": 60, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}

tiny = {"vocab_size": 60, "n_positions": 32, "n_embd": 16, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2}


def show(name, value):
    assert value.device.type == device, name
    print("=", name, [round(float(each), 3) for each in value.detach().float().flatten()[:20].cpu()])


def seeded(make):
    torch.manual_seed(0)
    return make()


ids = torch.randint(3, 50, (2, 7), generator=torch.Generator().manual_seed(0)).to(device)
gpt2 = seeded(lambda: GPT2LMHeadModel(GPT2Config(**tiny, n_layer=2)).eval()).to(device)
optimizer = torch.optim.AdamW(gpt2.parameters(), lr=0.01)
for step in range(3):
    loss = gpt2(ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"gpt2 loss {step}", loss)
show("gpt2 greedy", gpt2.generate(ids, max_new_tokens=4, do_sample=False, pad_token_id=0))
llama = seeded(lambda: LlamaForCausalLM(LlamaConfig(**small, max_position_embeddings=32)).eval()).to(device)
show("llama logits", llama(ids, attention_mask=torch.ones_like(ids)).logits)
show("llama beams", llama.generate(ids, max_new_tokens=4, num_beams=2, do_sample=False, pad_token_id=0))
bert = seeded(lambda: BertForSequenceClassification(BertConfig(**small)).eval()).to(device)
show("bert loss", bert(ids, labels=torch.tensor([0, 1], device=device)).loss)
t5_config = T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0)
t5 = seeded(lambda: T5ForConditionalGeneration(t5_config).eval()).to(device)
show("t5 loss", t5(input_ids=ids, labels=ids).loss)
show("t5 greedy", t5.generate(ids, max_new_tokens=3, do_sample=False))
vit_config = ViTConfig(**{key: small[key] for key in small if key != "vocab_size"}, image_size=32, patch_size=8)
vit = seeded(lambda: ViTForImageClassification(vit_config).eval()).to(device)
show("vit logits", vit(torch.ones(2, 3, 32, 32, device=device)).logits)
data = [{"input_ids": ids[0].cpu(), "labels": ids[1].cpu()} for _ in range(8)]
with tempfile.TemporaryDirectory() as folder:
    options = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_strategy": "no"}
    arguments = TrainingArguments(folder, max_steps=3, per_device_train_batch_size=2, **options)
    config = GPT2Config(**tiny, n_layer=1, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    trainer = Trainer(seeded(lambda: GPT2LMHeadModel(config)), arguments, train_dataset=data)
    trainer.train()
    show("trainer weights", next(trainer.model.parameters()))
