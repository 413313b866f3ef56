"""DTensor and FSDP2 in two processes."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor


def main(rank, count, port):
    on_card = torch.cuda.is_available()
    device = "cuda" if on_card else "cpu"
    backend = "nccl" if on_card else "gloo"
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count)
    if on_card:
        torch.cuda.set_device(rank)
    mesh = init_device_mesh(device, (count,))
    whole = torch.arange(16.0).view(4, 4).to(device)
    shared = distribute_tensor(whole, mesh, [Shard(0)])
    total = (shared + 1).full_tensor()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)).to(device)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        loss = model(torch.ones(3, 4, device=device)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert {shared.device.type, total.device.type, loss.device.type, next(model.parameters()).device.type} == {device}
    if rank == 0:
        print("= dtensor", total.sum().item(), flush=True)
        print("= fsdp2", round(loss.item(), 4), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    mp.spawn(main, (2, number), nprocs=2)
