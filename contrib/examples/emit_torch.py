#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A PyTorch job that tells Sluice its loss and prints none: one line for each, appended to the file that SLUICE_EMIT names.

    sbatch --train-resize=off --wrap "python3 emit_torch.py"
"""
import json
import os
import sys

import torch

# The file is there where the batch script runs, if the job is watched. Of several ranks one tells.
path = os.environ.get("SLUICE_EMIT", "")
told = open(path, "a", buffering=1, encoding="ascii") if os.path.exists(path) and os.environ.get("RANK", "0") == "0" else None

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(1, (int(sys.argv[1]) if len(sys.argv) > 1 else 500) + 1):
    inputs = torch.randn(64, 8)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True).sin())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if told and step % 10 == 0:
        told.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")  # NaN stays a bare NaN, which is understood
print("done")
