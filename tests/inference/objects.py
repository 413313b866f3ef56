"""Objects that keep a model, a device and data, in programs of one fault each."""

from __future__ import annotations

from typing import Final

from tests.inference.cases import Case, cases

OBJECTS: Final[tuple[Case, ...]] = cases("""
## trainer_whose_model_nobody_moves
class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 2)  # wrong
        self.model = nn.Linear(3, 2).to(device)  # right

    def step(self, x):
        return self.model(x.to(self.device))
Trainer("cuda").step(torch.rand(4, 3))  # run

## trainer_whose_batches_stay_on_the_host
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, device):
        self.model = nn.Linear(3, 2).to(device)
        self.device = device
        self.loader = DataLoader(TensorDataset(torch.rand(8, 3), torch.rand(8, 2)), batch_size=4)

    def epoch(self):
        total = 0.0
        for x, y in self.loader:
            x = x.to(self.device)
            y = y.to(self.device)  # right
            total += nn.functional.mse_loss(self.model(x), y).item()
        return total
Trainer("cuda").epoch()  # run

## agent_makes_the_state_on_the_cpu
class Agent:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = nn.Linear(4, 2).to(self.device)

    def act(self, state):
        state = torch.tensor(state, dtype=torch.float32)  # wrong
        state = torch.tensor(state, dtype=torch.float32, device=self.device)  # right
        return self.net(state).argmax().item()
Agent().act([0.1, 0.2, 0.3, 0.4])  # run

## agent_makes_the_state_of_a_list
class Agent:
    def __init__(self, device):
        self.device = device
        self.net = nn.Linear(4, 2).to(self.device)

    def act(self, state: list[float]):
        state = torch.tensor(state)  # wrong
        state = torch.tensor(state, device=self.device)  # right
        return self.net(state).argmax().item()
Agent("cuda").act([0.1, 0.2, 0.3, 0.4])  # run

## agent_samples_its_memory
import random
from collections import deque

class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2).cuda()
        self.memory = deque(maxlen=100)

    def remember(self, numbers):
        self.memory.append(torch.tensor(numbers))

    def learn(self):
        states = torch.stack(random.sample(self.memory, 2))
        states = states.cuda()  # right
        return self.net(states)
agent = Agent()  # run
agent.remember([0.1, 0.2, 0.3, 0.4])  # run
agent.remember([0.1, 0.2, 0.3, 0.4])  # run
agent.learn()  # run

## pipeline_moves_one_of_two_models
class Pipeline:
    def __init__(self, device):
        self.encoder = nn.Linear(3, 4).to(device)
        self.decoder = nn.Linear(4, 3)  # wrong
        self.decoder = nn.Linear(4, 3).to(device)  # right
        self.device = device

    def __call__(self, x):
        return self.decoder(self.encoder(x.to(self.device)))
Pipeline("cuda")(torch.rand(2, 3))  # run

## noise_beside_a_property_that_gives_the_device
class Sampler:
    def __init__(self):
        self.model = nn.Linear(3, 3).cuda()

    @property
    def device(self):
        return next(self.model.parameters()).device

    def sample(self, n):
        noise = torch.randn(n, 3)  # wrong
        noise = torch.randn(n, 3, device=self.device)  # right
        return self.model(noise)
Sampler().sample(2)  # run

## property_that_builds_the_model_when_it_is_first_read
class Predictor:
    def __init__(self, device):
        self.device = device
        self._model = None

    @property
    def model(self):
        if self._model is None:
            self._model = nn.Linear(3, 2)
            self._model.to(self.device)  # right
        return self._model

    def predict(self, x):
        return self.model(x.to(self.device))
Predictor("cuda").predict(torch.rand(1, 3))  # run

## property_with_a_setter_that_moves
class Holder:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 2)

    @property
    def model(self):
        return self._model

    @model.setter
    def model(self, value):
        self._model = value  # wrong
        self._model = value.to(self.device)  # right

    def run(self, x):
        return self.model(x.to(self.device))
Holder("cuda").run(torch.rand(1, 3))  # run

## dataclass_with_a_model_field
from dataclasses import dataclass, field

@dataclass
class Runner:
    device: torch.device
    model: nn.Module = field(default_factory=lambda: nn.Linear(3, 2))

    def __post_init__(self):  # right
        self.model.to(self.device)  # right

    def run(self, x: torch.Tensor):
        return self.model(x.to(self.device))

Runner(torch.device("cuda")).run(torch.rand(1, 3))

## dataclass_with_a_default_tensor
from dataclasses import dataclass, field

@dataclass
class Scaler:
    device: str = "cuda"
    scale: torch.Tensor = field(default_factory=lambda: torch.ones(3))  # wrong
    scale: torch.Tensor = field(default_factory=lambda: torch.ones(3, device="cuda"))  # right

    def apply(self, x: torch.Tensor):
        return x.to("cuda") * self.scale

Scaler().apply(torch.rand(3))

## dataclass_made_of_two_places
from dataclasses import dataclass

@dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor

batch = Batch(torch.rand(3).cuda(), torch.rand(3))  # wrong
batch = Batch(torch.rand(3).cuda(), torch.rand(3).cuda())  # right
print(batch.x - batch.y)

## named_tuple_made_of_two_places
from typing import NamedTuple

class Batch(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor

batch = Batch(x=torch.rand(3).cuda(), y=torch.rand(3))  # wrong
batch = Batch(x=torch.rand(3).cuda(), y=torch.rand(3, device="cuda"))  # right
print(batch.x - batch.y)

## named_tuple_of_collections
from collections import namedtuple

Step = namedtuple("Step", ["state", "reward"])
step = Step(torch.rand(3).cuda(), torch.rand(3))
step = step._replace(reward=step.reward.cuda())  # right
print(step.state + step.reward)

## base_keeps_the_device_and_child_the_model
class Base:
    def __init__(self, device):
        self.device = device

class Child(Base):
    def __init__(self, device):
        super().__init__(device)
        self.model = nn.Linear(3, 2)
        self.model.to(self.device)  # right

    def run(self, x):
        return self.model(x.to(self.device))
Child("cuda").run(torch.rand(1, 3))  # run

## base_method_uses_what_the_child_builds
class Base:
    def __init__(self):
        self.device = "cuda"
        self.model = self.build()

    def build(self):
        raise NotImplementedError

    def run(self, x):
        return self.model(x.to(self.device))

class Child(Base):
    def build(self):
        return nn.Linear(3, 2)  # wrong
        return nn.Linear(3, 2).to(self.device)  # right
Child().run(torch.rand(1, 3))  # run

## mixin_that_puts_inputs_on_the_device
class OnDevice:
    def put(self, x):
        return x.to(self.device)

class Model(OnDevice):
    def __init__(self, device):
        self.device = device
        self.net = self.put(nn.Linear(3, 2))

    def predict(self, x):
        return self.net(torch.zeros(1, 3) + x.cpu())  # wrong
        return self.net(self.put(torch.zeros(1, 3) + x.cpu()))  # right
Model("cuda").predict(torch.rand(1, 3))  # run

## class_attribute_is_a_tensor
class Normalize:
    mean = torch.tensor([0.4, 0.5, 0.6])

    def apply(self, x):
        x = x.cuda()
        return x - self.mean  # wrong
        return x - self.mean.cuda()  # right
Normalize().apply(torch.rand(3))  # run

## class_attribute_is_the_device
class Runner:
    device = "cuda"

    def __init__(self):
        self.model = nn.Linear(3, 2).to(self.device)

    def warm_up(self):
        return self.model(torch.zeros(1, 3))  # wrong
        return self.model(torch.zeros(1, 3, device=self.device))  # right
Runner().warm_up()  # run

## model_built_by_the_first_call
class Service:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = None

    def load(self):
        self.model = nn.Linear(3, 2)  # wrong
        self.model = nn.Linear(3, 2).to(self.device)  # right

    def predict(self, x):
        if self.model is None:
            self.load()
        return self.model(x.to(self.device))
Service().predict(torch.rand(1, 3))  # run

## model_given_by_a_function
def build(width):
    return nn.Sequential(nn.Linear(3, width), nn.ReLU())

class Runner:
    def __init__(self, device):
        self.device = device
        self.model = build(4)  # wrong
        self.model = build(4).to(device)  # right

    def run(self, x):
        return self.model(x.to(self.device))
Runner("cuda").run(torch.rand(1, 3))  # run

## model_built_by_a_partial
from functools import partial

class Runner:
    def __init__(self):
        build = partial(nn.Linear, 3)  # wrong
        build = partial(nn.Linear, 3, device="cuda")  # right
        self.model = build(2)

    def run(self, x):
        return self.model(x.cuda())
Runner().run(torch.rand(1, 3))  # run

## partial_of_a_factory_in_a_field
from functools import partial

class Noise:
    def __init__(self):
        self.draw = partial(torch.randn, 3)  # wrong
        self.draw = partial(torch.randn, 3, device="cuda")  # right

    def add(self, x):
        return x.cuda() + self.draw()
Noise().add(torch.rand(3))  # run

## target_network_copied_before_the_move
import copy

class Agent:
    def __init__(self, device):
        self.device = device
        self.net = nn.Linear(3, 2)
        self.net = self.net.to(device)  # right
        self.target = copy.deepcopy(self.net)
        self.net = self.net.to(device)

    def value(self, x):
        return self.target(x.to(self.device))
Agent("cuda").value(torch.rand(1, 3))  # run

## list_of_models_in_a_field
class Ensemble:
    def __init__(self, device):
        self.device = device
        self.models = [nn.Linear(3, 2) for _ in range(3)]  # wrong
        self.models = [nn.Linear(3, 2).to(device) for _ in range(3)]  # right

    def predict(self, x):
        x = x.to(self.device)
        return [model(x) for model in self.models]
Ensemble("cuda").predict(torch.rand(1, 3))  # run

## dict_of_models_in_a_field
class Gan:
    def __init__(self):
        self.nets = {"gen": nn.Linear(3, 3).cuda(), "disc": nn.Linear(3, 1)}
        self.nets["disc"].cuda()  # right

    def step(self):
        fake = self.nets["gen"](torch.randn(2, 3).cuda())
        return self.nets["disc"](fake)
Gan().step()  # run

## models_appended_in_a_loop
class Ensemble:
    def __init__(self):
        self.models = []
        for _ in range(2):
            model = nn.Linear(3, 2)
            model = model.cuda()  # right
            self.models.append(model)

    def first(self, x):
        return self.models[0](x.cuda())
Ensemble().first(torch.rand(1, 3))  # run

## generator_method_gives_host_batches
class Feed:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 2).to(device)

    def batches(self):
        for _ in range(2):
            yield torch.rand(4, 3)  # wrong
            yield torch.rand(4, 3, device=self.device)  # right

    def run(self):
        return [self.model(batch) for batch in self.batches()]
Feed("cuda").run()  # run

## step_is_a_closure_over_the_model
def make_step(device):
    model = nn.Linear(3, 2)  # wrong
    model = nn.Linear(3, 2).to(device)  # right

    def step(x):
        return model(x.to(device))

    return step
make_step("cuda")(torch.rand(1, 3))  # run

## lambda_in_a_field
class Transform:
    def __init__(self):
        self.mean = torch.rand(3)  # wrong
        self.mean = torch.rand(3, device="cuda")  # right
        self.apply = lambda x: x - self.mean

    def run(self, x):
        return self.apply(x.cuda())
Transform().run(torch.rand(3))  # run

## global_model_set_by_a_function
model = None

def setup():
    global model
    model = nn.Linear(3, 2)  # wrong
    model = nn.Linear(3, 2).cuda()  # right

setup()
print(model(torch.rand(1, 3).cuda()))

## two_objects_on_two_devices
class Holder:
    def __init__(self, device):
        self.weight = torch.rand(3, device=device)

first = Holder("cuda")
second = Holder("cpu")  # wrong
second = Holder("cuda")  # right
print(first.weight + second.weight)

## one_of_two_objects_is_moved
class Holder:
    def __init__(self):
        self.net = nn.Linear(3, 3)

first, second = Holder(), Holder()
first.net.cuda()
second.net.cuda()  # right
print(second.net(first.net(torch.rand(1, 3).cuda())))

## one_of_two_modules_of_one_class_is_moved
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)

first, second = Net(), Net()
first.cuda()
second.cuda()  # right
print(second(torch.rand(1, 3, device="cuda")))

## average_is_kept_on_the_cpu
class Average:
    def __init__(self, device):
        self.mean = torch.zeros(3)  # wrong
        self.mean = torch.zeros(3, device=device)  # right
        self.device = device

    def update(self, x):
        x = x.to(self.device)
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
Average("cuda").update(torch.rand(4, 3))  # run

## normalizer_held_by_a_trainer
class Normalizer:
    def __init__(self):
        self.mean = torch.zeros(3)
        self.mean = self.mean.cuda()  # right

    def __call__(self, x):
        return x - self.mean

class Trainer:
    def __init__(self):
        self.normalizer = Normalizer()

    def prepare(self, x):
        return self.normalizer(x.cuda())
Trainer().prepare(torch.rand(4, 3))  # run

## field_of_a_field
class Agent:
    def __init__(self):
        self.net = nn.Linear(3, 2)

class Runner:
    def __init__(self, device):
        self.device = device
        self.agent = Agent()
        self.agent.net.to(device)  # right

    def act(self, x):
        return self.agent.net(x.to(self.device))
Runner("cuda").act(torch.rand(1, 3))  # run

## own_to_method_forgets_a_tensor
class Filter:
    def __init__(self):
        self.net = nn.Linear(3, 3)
        self.gain = torch.ones(3)

    def to(self, device):
        self.net = self.net.to(device)
        self.gain = self.gain.to(device)  # right
        return self

    def run(self, x):
        return self.net(x) * self.gain

filter_ = Filter().to("cuda")
print(filter_.run(torch.rand(1, 3).cuda()))

## context_manager_gives_a_tensor
class Scratch:
    def __enter__(self):
        self.buffer = torch.zeros(3)  # wrong
        self.buffer = torch.zeros(3, device="cuda")  # right
        return self.buffer

    def __exit__(self, *details):
        return None

with Scratch() as buffer:
    print(buffer + torch.rand(3, device="cuda"))

## constructor_is_a_class_method
class Runner:
    def __init__(self, model, device):
        self.model = model
        self.device = device

    @classmethod
    def create(cls, device):
        return cls(nn.Linear(3, 2), device)  # wrong
        return cls(nn.Linear(3, 2).to(device), device)  # right

    def run(self, x):
        return self.model(x.to(self.device))

print(Runner.create("cuda").run(torch.rand(1, 3)))

## mask_made_by_a_static_method
class Attention:
    def __init__(self, device):
        self.device = device

    @staticmethod
    def mask(size, device):
        return torch.ones(size, size).tril()  # wrong
        return torch.ones(size, size, device=device).tril()  # right

    def run(self, scores):
        scores = scores.to(self.device)
        return scores * self.mask(3, self.device)
Attention("cuda").run(torch.rand(3, 3))  # run

## hidden_state_reset_on_the_cpu
class Player:
    def __init__(self, device):
        self.device = device
        self.cell = nn.GRUCell(3, 4).to(device)
        self.hidden = None

    def reset(self):
        self.hidden = torch.zeros(1, 4)  # wrong
        self.hidden = torch.zeros(1, 4, device=self.device)  # right

    def act(self, x):
        self.hidden = self.cell(x.to(self.device), self.hidden)
        return self.hidden
player = Player("cuda")  # run
player.reset()  # run
player.act(torch.rand(1, 3))  # run

## device_of_a_settings_object
class Settings:
    def __init__(self):
        self.device = "cuda"

class Runner:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.model = nn.Linear(3, 2)  # wrong
        self.model = nn.Linear(3, 2).to(settings.device)  # right

    def run(self, x):
        return self.model(x.to(self.settings.device))
Runner(Settings()).run(torch.rand(1, 3))  # run

## class_weights_of_a_kept_loss
class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 2).to(device)
        self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))  # wrong
        self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0], device=device))  # right

    def step(self, x, y):
        return self.loss(self.model(x.to(self.device)), y.to(self.device))
Trainer("cuda").step(torch.rand(2, 3), torch.tensor([0, 1]))  # run

## fields_unpacked_from_a_method
class Runner:
    def __init__(self):
        self.model, self.bias = self._build()

    def _build(self):
        return nn.Linear(3, 2).cuda(), torch.zeros(2)  # wrong
        return nn.Linear(3, 2).cuda(), torch.zeros(2).cuda()  # right

    def run(self, x):
        return self.model(x.cuda()) + self.bias
Runner().run(torch.rand(1, 3))  # run

## class_with_slots
class Pair:
    __slots__ = ("left", "right")

    def __init__(self):
        self.left = torch.rand(3).cuda()
        self.right = torch.rand(3)  # wrong
        self.right = torch.rand(3).cuda()  # right

    def total(self):
        return self.left + self.right
Pair().total()  # run

## fluent_method_moves_the_model
class Runner:
    def __init__(self):
        self.model = nn.Linear(3, 2)

    def on(self, device):
        self.model.to(device)
        return self

    def run(self, x):
        return self.model(x)

print(Runner().on("cuda").run(torch.rand(1, 3)))  # wrong
print(Runner().on("cuda").run(torch.rand(1, 3).cuda()))  # right

## unregistered_tensor_of_a_module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.mask = torch.ones(3)  # wrong
        self.register_buffer("mask", torch.ones(3))  # right

    def forward(self, x):
        return self.layer(x) * self.mask

net = Net().cuda()
print(net(torch.rand(1, 3).cuda()))

## function_uses_the_model_of_an_object
class Runner:
    def __init__(self):
        self.model = nn.Linear(3, 2).cuda()

def evaluate(runner: Runner):
    return runner.model(torch.rand(1, 3))  # wrong
    return runner.model(torch.rand(1, 3).cuda())  # right

evaluate(Runner())

## inner_function_of_a_method
class Runner:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 2).to(device)

    def run(self, rows):
        def one(row):
            row = torch.tensor(row)
            row = row.to(self.device)  # right
            return self.model(row)

        return [one(row) for row in rows]
Runner("cuda").run([[0.1, 0.2, 0.3]])  # run

## overridden_method_makes_the_noise
class Base:
    def __init__(self):
        self.model = nn.Linear(3, 3).cuda()

    def noise(self):
        return torch.randn(1, 3, device="cuda")

    def run(self):
        return self.model(self.noise())

class Child(Base):
    def noise(self):
        return torch.randn(1, 3)  # wrong
        return torch.randn(1, 3).cuda()  # right

print(Child().run())

## buffer_filled_by_index_and_read_back
class Memory:
    def __init__(self, size, device):
        self.states = torch.zeros(size, 3)  # wrong
        self.states = torch.zeros(size, 3, device=device)  # right
        self.net = nn.Linear(3, 2).to(device)

    def values(self, index: int):
        return self.net(self.states[index])
Memory(4, "cuda").values(0)  # run

## object_returned_by_a_function
class Holder:
    def __init__(self, model):
        self.model = model

def load():
    return Holder(nn.Linear(3, 2))  # wrong
    return Holder(nn.Linear(3, 2).cuda())  # right

holder = load()
print(holder.model(torch.rand(1, 3).cuda()))

## model_of_the_second_object_in_a_list
class Holder:
    def __init__(self, device):
        self.weight = torch.rand(3).to(device)

holders = [Holder("cuda"), Holder("cpu")]  # wrong
holders = [Holder("cuda"), Holder("cuda")]  # right
print(holders[0].weight + holders[1].weight)

## object_that_is_its_own_iterator
class Batches:
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return self

    def __next__(self):
        return self.rows

for rows in Batches(torch.rand(3)):
    total = rows + torch.ones(3).cuda()  # wrong
    total = rows + torch.ones(3)  # right
    break  # run

## parameters_in_a_list
class Scales(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])

    def forward(self, x):
        return x * self.scales[0]

scales = Scales()  # wrong
scales = Scales().cuda()  # right
print(scales(torch.rand(3).cuda()))
""")
