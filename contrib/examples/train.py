#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A small PyTorch job that Sluice can resize by checkpoint and restart.

It learns to imitate a random network (real training, on the CPU). What a job has to do for Sluice is marked "Sluice:",
five lines in all: print the loss, catch the checkpoint signal, save, say so, and load the checkpoint when started again.

The global batch is fixed, so more GPUs mean more steps per second. The GPUs of a private cluster are fake; --seconds-per-step
stands in for their speed: a step takes that long on one GPU, and that divided by the number of GPUs (less a share that does not
divide) on several.
"""
import argparse
import os
import signal
import time

import torch


def gpus_held():
    """GPUs that Slurm gave this node."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return max(1, len([index for index in visible.split(",") if index]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True, help="file to save to and to continue from")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seconds-per-step", type=float, default=0.2, help="on one GPU")
    parser.add_argument("--serial-share", type=float, default=0.05, help="of a step that GPUs do not divide")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    teacher = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
    student = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(student.parameters(), lr=options.learning_rate)
    step = 0
    if os.path.exists(options.checkpoint):  # Sluice: continue where the run before stopped
        saved = torch.load(options.checkpoint)
        student.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        print(f"continued from the checkpoint of step {step}", flush=True)

    told = []
    signal.signal(signal.SIGUSR1, lambda *_: told.append(True))  # Sluice: a restart is coming

    def save():
        scratch = options.checkpoint + ".new"
        torch.save({"model": student.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, scratch)
        os.replace(scratch, options.checkpoint)

    gpus = gpus_held()
    share = options.serial_share
    pace = options.seconds_per_step * (share + (1 - share) / gpus)
    print(f"training on {gpus} GPUs: {os.environ.get('CUDA_VISIBLE_DEVICES', 'none')}", flush=True)
    while step < options.steps:
        begun = time.monotonic()
        inputs = torch.randn(256, 32)
        with torch.no_grad():
            wanted = teacher(inputs) + 0.1 * torch.randn(256, 8)
        loss = torch.nn.functional.mse_loss(student(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 5 == 0:
            print(f"step {step}: loss {loss.item():.5f}", flush=True)  # Sluice: the loss
        if told:
            save()
            done = os.environ.get("SLUICE_CHECKPOINT_DONE")
            if done:
                open(done, "w", encoding="ascii").close()  # Sluice: ready to be restarted
            print(f"checkpoint of step {step} written", flush=True)
            signal.pause()  # what were trained now would be lost
        time.sleep(max(0.0, pace - (time.monotonic() - begun)))
    save()
    print(f"done after {step} steps", flush=True)


if __name__ == "__main__":
    main()
