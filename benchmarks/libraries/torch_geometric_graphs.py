"""Graph layers in a training loop, batches, pooling."""
# uses: torch-geometric

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool

device = "cuda" if torch.cuda.is_available() else "cpu"
edges = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
batch = Batch.from_data_list([Data(x=torch.eye(3) * n, edge_index=edges, y=torch.tensor([n % 2])) for n in range(1, 5)])
batch = batch.to(device)
for name, make in {
    "gcn": lambda: GCNConv(3, 4),
    "sage": lambda: SAGEConv(3, 4),
    "gat": lambda: GATConv(3, 2, heads=2),
    "gin": lambda: GINConv(torch.nn.Linear(3, 4)),
}.items():
    torch.manual_seed(0)
    layer, head = make().to(device), torch.nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        pooled = global_mean_pool(layer(batch.x, batch.edge_index).relu(), batch.batch)
        loss = torch.nn.functional.cross_entropy(head(pooled), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.device.type == device
    print("=", name, round(loss.item(), 4))
