"""Correct programs in which something moves a value out of sight: a call, a loop, an alias, a hook. Nothing is said of them.

Some call a module `somewhere` that cannot be read. `SOMEWHERE` is one that makes all of them correct.
"""

from __future__ import annotations

from typing import Final

from tests.inference.cases import sources

#: What the module `somewhere` is where the programs are executed.
SOMEWHERE: Final = """
import torch

class Engine:
    def __init__(self, model=None):
        self.model = model

    def start(self):
        self.model.cuda()

    def add(self, model):
        self.model = model
        model.cuda()

def place(*modules, **more):
    for module in (*modules, *more.values()):
        if isinstance(module, torch.nn.Module):
            module.cuda()
        elif isinstance(module, list):
            module[:] = [each.cuda() for each in module]
        elif isinstance(module, dict):
            for key in module:
                module[key] = module[key].cuda()
        elif hasattr(module, "net"):
            module.net.cuda()

def call(function):
    return function()

def placed(function):
    return lambda *args: function(*args).cuda()

class Base:
    def __init__(self):
        self.prepare()

    def prepare(self):
        self.build()
        self.model.cuda()
"""

EFFECTS: Final[dict[str, str]] = sources("""
## elements_moved_in_a_loop
layers = [nn.Linear(3, 3) for _ in range(2)]
for layer in layers:
    layer.cuda()
x = torch.rand(2, 3).cuda()
for layer in layers:
    x = layer(x)
print(x)

## global_rebound
weight = torch.rand(3)

def setup():
    global weight
    weight = weight.cuda()

setup()
print(weight + torch.ones(3).cuda())

## helper_moves_an_entry
def prepare(batch):
    batch["y"] = batch["y"].cuda()

batch = {"x": torch.rand(3), "y": torch.rand(3)}
prepare(batch)
print(batch["y"] + torch.ones(3, device="cuda"))

## helper_moves_elements
def prepare(modules):
    for module in modules:
        module.cuda()

first, second = nn.Linear(3, 3), nn.Linear(3, 3)
prepare([first, second])
print(second(first(torch.rand(2, 3).cuda())))

## same_condition_twice
def run(first: bool, second: bool):
    bias = torch.rand(3)
    if first and second:
        bias = bias.cuda()
    if second and first:
        return torch.rand(3).cuda() + bias
    return None

print(run(True, True))

## unreadable_engine
from somewhere import Engine

model = nn.Linear(3, 2)
engine = Engine(model)
engine.start()
print(model(torch.rand(4, 3).cuda()))

## unreadable_helper
from somewhere import place

model = nn.Linear(3, 2)
place(model)
print(model(torch.rand(4, 3).cuda()))

## items_moved_by_index_in_a_loop
layers = [nn.Linear(3, 3), nn.Linear(3, 3)]
for i in range(len(layers)):
    layers[i] = layers[i].cuda()
print(layers[1](layers[0](torch.rand(1, 3).cuda())))

## values_of_a_dict_moved_in_a_loop
nets = {"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)}
for net in nets.values():
    net.cuda()
print(nets["b"](nets["a"](torch.rand(1, 3).cuda())))

## items_of_a_dict_replaced_in_a_loop
batch = {"x": torch.rand(3), "y": torch.rand(3)}
for key, value in batch.items():
    batch[key] = value.cuda()
print(batch["x"] + torch.ones(3).cuda())

## list_rebuilt_by_a_comprehension
parts = [torch.rand(3), torch.rand(3)]
parts = [part.cuda() for part in parts]
print(parts[0] + torch.ones(3).cuda())

## moved_through_an_alias
model = nn.Linear(3, 2)
same = model
same.cuda()
print(model(torch.rand(1, 3).cuda()))

## part_moved_with_its_owner
inner = nn.Linear(3, 2)
outer = nn.Sequential(inner, nn.ReLU())
outer.cuda()
print(inner(torch.rand(1, 3).cuda()))

## nonlocal_rebound
def run():
    weight = torch.rand(3)

    def setup():
        nonlocal weight
        weight = weight.cuda()

    setup()
    return weight + torch.ones(3).cuda()

print(run())

## method_replaces_a_field
class Holder:
    def __init__(self):
        self.weight = torch.rand(3)

    def on_card(self):
        self.weight = self.weight.cuda()

holder = Holder()
holder.on_card()
print(holder.weight + torch.ones(3).cuda())

## function_replaces_a_field_of_its_argument
class Holder:
    def __init__(self):
        self.weight = torch.rand(3)

def prepare(holder):
    holder.weight = holder.weight.cuda()

holder = Holder()
prepare(holder)
print(holder.weight + torch.ones(3).cuda())

## helper_of_a_helper_moves
def inner(module):
    module.cuda()

def outer(module):
    inner(module)

model = nn.Linear(3, 2)
outer(model)
print(model(torch.rand(1, 3).cuda()))

## recursive_helper_moves
def place(modules):
    if modules:
        modules[0].cuda()
        place(modules[1:])

first, second = nn.Linear(3, 3), nn.Linear(3, 3)
place([first, second])
print(second(first(torch.rand(1, 3).cuda())))

## moved_by_a_lambda
place = lambda module: module.cuda()
model = nn.Linear(3, 2)
place(model)
print(model(torch.rand(1, 3).cuda()))

## moved_by_map
first, second = nn.Linear(3, 3), nn.Linear(3, 3)
list(map(lambda module: module.cuda(), [first, second]))
print(second(first(torch.rand(1, 3).cuda())))

## moved_by_apply
model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
model.apply(lambda module: module.cuda())
print(model(torch.rand(1, 3).cuda()))

## moved_by_getattr
model = nn.Linear(3, 2)
getattr(model, "cuda")()
print(model(torch.rand(1, 3).cuda()))

## moved_through_parameters
model = nn.Linear(3, 2)
for parameter in model.parameters():
    parameter.data = parameter.data.cuda()
print(model(torch.rand(1, 3).cuda()))

## set_by_setattr
class Holder:
    pass

holder = Holder()
holder.weight = torch.rand(3)
setattr(holder, "weight", holder.weight.cuda())
print(holder.weight + torch.ones(3).cuda())

## set_through_the_dictionary_of_an_object
class Holder:
    def __init__(self):
        self.weight = torch.rand(3)

holder = Holder()
holder.__dict__.update(weight=holder.weight.cuda())
print(holder.weight + torch.ones(3).cuda())

## dict_updated
batch = {"x": torch.rand(3)}
batch.update({"x": batch["x"].cuda()})
print(batch["x"] + torch.ones(3).cuda())

## list_replaced_by_slice
parts = [torch.rand(3)]
parts[:] = [part.cuda() for part in parts]
print(parts[0] + torch.ones(3).cuda())

## list_popped_and_appended
parts = [torch.rand(3)]
parts.append(parts.pop(0).cuda())
print(parts[0] + torch.ones(3).cuda())

## tensor_data_replaced
weight = torch.rand(3)
weight.data = weight.data.cuda()
print(weight + torch.ones(3).cuda())

## unreadable_call_gets_a_list
from somewhere import place

parts = [torch.rand(3)]
place(parts)
print(parts[0] + torch.ones(3).cuda())

## unreadable_call_gets_a_dict
from somewhere import place

batch = {"x": torch.rand(3)}
place(batch)
print(batch["x"] + torch.ones(3).cuda())

## unreadable_call_gets_an_object
from somewhere import place

class Holder:
    def __init__(self):
        self.net = nn.Linear(3, 2)

holder = Holder()
place(holder)
print(holder.net(torch.rand(1, 3).cuda()))

## unreadable_call_gets_a_module_by_keyword
from somewhere import place

model = nn.Linear(3, 2)
place(module=model)
print(model(torch.rand(1, 3).cuda()))

## unreadable_call_gets_a_module_by_star
from somewhere import place

models = [nn.Linear(3, 3), nn.Linear(3, 3)]
place(*models)
print(models[0](torch.rand(1, 3).cuda()))

## unreadable_call_gets_a_bound_method
from somewhere import call

model = nn.Linear(3, 2)
call(model.cuda)
print(model(torch.rand(1, 3).cuda()))

## unreadable_call_gets_a_function_that_moves
from somewhere import call

model = nn.Linear(3, 2)
call(lambda: model.cuda())
print(model(torch.rand(1, 3).cuda()))

## unreadable_call_gets_a_function_that_rebinds_a_global
from somewhere import call

weight = torch.rand(3)

def setup():
    global weight
    weight = weight.cuda()

call(setup)
print(weight + torch.ones(3).cuda())

## unreadable_engine_gets_the_module_later
from somewhere import Engine

model = nn.Linear(3, 2)
engine = Engine()
engine.add(model)
print(model(torch.rand(1, 3).cuda()))

## unreadable_decorator
from somewhere import placed

@placed
def make():
    return torch.rand(3)

print(make() + torch.ones(3).cuda())

## unreadable_base_moves_what_the_child_builds
from somewhere import Base

class Child(Base):
    def build(self):
        self.model = nn.Linear(3, 2)

    def run(self):
        return self.model(torch.rand(1, 3).cuda())

print(Child().run())

## unreadable_object_in_a_field
from somewhere import Engine

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 2)
        self.engine = Engine(self.model)

    def run(self):
        self.engine.start()
        return self.model(torch.rand(1, 3).cuda())

print(Trainer().run())

## given_callback_moves
def run(callback):
    model = nn.Linear(3, 2)
    callback(model)
    return model(torch.rand(1, 3).cuda())

print(run(lambda model: model.cuda()))

## hook_moves_the_inputs
def to_card(module, inputs):
    return tuple(each.cuda() for each in inputs)

model = nn.Linear(3, 2).cuda()
model.register_forward_pre_hook(to_card)
print(model(torch.rand(1, 3)))

## default_device_for_the_program
torch.set_default_device("cuda")
print(torch.rand(3) + torch.ones(3, device="cuda"))
torch.set_default_device(None)

## default_device_in_a_block
with torch.device("cuda"):
    bias = torch.rand(3)
print(bias + torch.ones(3, device="cuda"))

## exit_stack_moves_later
import contextlib

weight = nn.Linear(3, 2)
with contextlib.ExitStack() as stack:
    stack.callback(weight.cuda)
print(weight(torch.rand(1, 3).cuda()))

## moved_in_a_finally
model = nn.Linear(3, 2)
try:
    print("try")
finally:
    model.cuda()
print(model(torch.rand(1, 3).cuda()))

## helper_gets_modules_by_star
def place(*modules):
    for module in modules:
        module.cuda()

first, second = nn.Linear(3, 3), nn.Linear(3, 3)
place(first, second)
print(second(first(torch.rand(1, 3).cuda())))

## helper_gets_a_module_by_two_stars
def place(**modules):
    for module in modules.values():
        module.cuda()

model = nn.Linear(3, 2)
place(model=model)
print(model(torch.rand(1, 3).cuda()))

## helper_gets_the_values_of_a_dict
def place(modules):
    for module in modules:
        module.cuda()

model = nn.Linear(3, 2)
place({"model": model}.values())
print(model(torch.rand(1, 3).cuda()))

## modules_of_a_tuple_moved_in_a_loop
first, second = nn.Linear(3, 3), nn.Linear(3, 3)
for module in (first, second):
    module.cuda()
print(second(first(torch.rand(1, 3).cuda())))

## modules_rebound_by_a_comprehension
first, second = nn.Linear(3, 3), nn.Linear(3, 3)
first, second = [module.cuda() for module in (first, second)]
print(second(first(torch.rand(1, 3).cuda())))

## thread_moves
import threading

model = nn.Linear(3, 2)
thread = threading.Thread(target=model.cuda)
thread.start()
thread.join()
print(model(torch.rand(1, 3).cuda()))

## partial_of_a_move
from functools import partial

model = nn.Linear(3, 2)
move = partial(model.to, "cuda")
move()
print(model(torch.rand(1, 3).cuda()))

## move_kept_in_a_name
model = nn.Linear(3, 2)
move = model.cuda
move()
print(model(torch.rand(1, 3).cuda()))

## cached_function_gives_the_same_model
import functools

@functools.lru_cache
def model():
    return nn.Linear(3, 2)

model().cuda()
print(model()(torch.rand(1, 3).cuda()))

## input_follows_the_module_in_a_loop
model = nn.Linear(3, 3).cuda()
x = torch.rand(1, 3)
for _ in range(2):
    there = next(model.parameters()).device
    x = model(x.to(there))
    model.cpu()

## flag_ends_the_loop_with_the_move
model = nn.Linear(3, 3).cuda()
running = True
while running:
    print(model(torch.rand(1, 3).cuda()))
    model.cpu()
    running = False
""")

#: Programs that fail though a call that cannot be read stands in them: it does not reach what fails.
OUT_OF_REACH: Final[dict[str, str]] = sources("""
## unreadable_call_gets_another_module
from somewhere import place

model, other = nn.Linear(3, 2), nn.Linear(3, 2)
place(other)
print(model(torch.rand(1, 3).cuda()))

## unreadable_call_gets_a_number
from somewhere import call

model = nn.Linear(3, 2)
call(lambda: 3)
print(model(torch.rand(1, 3).cuda()))

## module_is_printed
model = nn.Linear(3, 2)
print(model)
print(model(torch.rand(1, 3).cuda()))

## length_of_a_list_is_asked
layers = [nn.Linear(3, 3), nn.Linear(3, 3)]
print(len(layers), list(enumerate(layers)))
print(layers[0](torch.rand(1, 3).cuda()))

## unreadable_call_before_the_module_is_made
from somewhere import place

place([])
model = nn.Linear(3, 2)
print(model(torch.rand(1, 3).cuda()))

## helper_moves_another_argument
def prepare(first, second):
    second.cuda()
    return first

first, second = nn.Linear(3, 3), nn.Linear(3, 3)
prepare(first, second)
print(first(torch.rand(1, 3).cuda()))

## helper_rebinds_its_own_name_alone
def prepare(weight):
    weight = weight.cuda()

weight = torch.rand(3)
prepare(weight)
print(weight + torch.ones(3).cuda())

## local_of_the_same_name_as_a_global
weight = torch.rand(3)

def setup():
    weight = torch.rand(3).cuda()
    return weight

setup()
print(weight + torch.ones(3).cuda())

## first_of_two_entries_is_replaced
def prepare(batch):
    batch["x"] = batch["x"].cuda()

batch = {"x": torch.rand(3), "y": torch.rand(3)}
prepare(batch)
print(batch["y"] + torch.ones(3).cuda())
""")
