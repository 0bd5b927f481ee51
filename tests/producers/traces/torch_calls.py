"""Trains a small network under torch.profiler with stacks, on the CPU. Usage: python3 torch_calls.py STEPS OUT."""

import json
import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, sheet):
        return self.second(torch.relu(self.first(sheet)))


def normalise(sheet):
    return (sheet - sheet.mean()) / sheet.std()


def step(net, optimizer):
    loss = net(normalise(torch.randn(16, 64))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(steps):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        step(net, optimizer)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(2)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as profiler:
        train(int(sys.argv[1]))
    profiler.export_chrome_trace(sys.argv[2])
    with open(sys.argv[2]) as file:
        trace = json.load(file) | {"host_name": "press"}
    with open(sys.argv[2], "w") as file:
        json.dump(trace, file, indent=1)
