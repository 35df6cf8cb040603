"""Train a network on handwritten digits, draw a figure, save a checkpoint and record a trace.

The network is the one in the first listing of "PyTorch: An Imperative Style, High-Performance Deep Learning Library"
(NeurIPS 2019): a convolution, and a linear layer that is written here from two parameters. The data are the 1797 scanned
digits of the UCI repository that scikit-learn ships, 8 x 8 pixels each.

    python docs/examples/digits.py --out demo-out

If the imports name `torch` instead of `rushlight`, the program runs on PyTorch, too.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # this backend draws into files and needs no display

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import rushlight as torch
from rushlight import Tensor, nn, optim
from rushlight.nn import functional as F
from rushlight.profiler import profile, record_function
from rushlight.utils.data import DataLoader, TensorDataset

REQUIRED_ACCURACY = 0.97
SPLIT_SEED = 0  # the split does not change, so accuracies of different runs can be compared
BATCH_SIZE = 32
LEARNING_RATE = 2e-3


class LinearLayer(nn.Module):
    """activations (N, inputs) -> (N, outputs). An implementation of `nn.Linear`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        # Scale the weight so that the outputs initially have the variance of the inputs, whatever their number.
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / math.sqrt(inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, activations: Tensor) -> Tensor:
        return torch.mm(activations, self.weight) + self.bias


class Network(nn.Module):
    """images (N, 1, 8, 8) -> probabilities (N, 10)."""

    def __init__(self, filters: int = 128) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, filters, kernel_size=3)
        self.linear = LinearLayer(filters * 6 * 6, 10)

    def forward(self, images: Tensor) -> Tensor:
        features = F.relu(self.convolution(images))
        # The printed listing lacks this line, but maps have four dimensions and this linear layer requires two.
        scores = self.linear(torch.flatten(features, 1))
        return F.softmax(scores, dim=1)


def digits() -> tuple[TensorDataset, TensorDataset]:
    """Training and test set: (1, 8, 8) float32 images in [0, 1], int64 labels. Digits are equally frequent in both sets."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    parts = train_test_split(images, labels, test_size=0.25, stratify=labels, random_state=SPLIT_SEED)
    train_images, test_images, train_labels, test_labels = (torch.from_numpy(part) for part in parts)
    return TensorDataset(train_images, train_labels), TensorDataset(test_images, test_labels)


def cross_entropy(probabilities: Tensor, labels: Tensor) -> Tensor:
    """The mean negative log-likelihood. Probabilities may round to 0, whose logarithm is infinite."""
    return F.nll_loss(torch.log(torch.clamp(probabilities, min=1e-9)), labels)


def train_step(network: Network, optimizer: optim.Optimizer, images: Tensor, labels: Tensor) -> float:
    """One step of training: forward, backward, update."""
    optimizer.zero_grad()
    # The names appear in the trace. They take almost no time if nothing is recorded.
    with record_function("forward"):
        loss = cross_entropy(network(images), labels)
    with record_function("backward"):
        loss.backward()
    with record_function("update"):
        optimizer.step()
    return loss.item()


def predict(network: Network, images: Tensor) -> Tensor:
    """The most probable digit of each image: (N,) int64."""
    network.eval()
    with torch.no_grad():
        return network(images).argmax(dim=1)


def accuracy(network: Network, dataset: TensorDataset) -> float:
    """The fraction of images whose digit the network recognises."""
    images, labels = dataset.tensors
    return (predict(network, images) == labels).float().mean().item()


def train(
    network: Network, optimizer: optim.Optimizer, loader: DataLoader, test: TensorDataset, epochs: int
) -> tuple[list[float], list[float]]:
    """Trains for some epochs. Returns the loss of every step and the test accuracy after every epoch."""
    losses: list[float] = []
    accuracies: list[float] = []
    with tqdm(total=epochs * len(loader), unit="step") as bar:
        for epoch in range(epochs):
            # With a rate that falls to zero, the last epochs converge instead of moving around the optimum.
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * (1 - epoch / epochs)
            network.train()
            for images, labels in loader:
                losses.append(train_step(network, optimizer, images, labels))
                bar.update()
            accuracies.append(accuracy(network, test))
            bar.set_description(
                f"epoch {epoch + 1}: loss {losses[-1]:.3f}, test accuracy {accuracies[-1]:.1%}"
            )
    return losses, accuracies


def wrong_first(network: Network, test: TensorDataset) -> tuple[Tensor, list[int]]:
    """The predictions for all images, and the indices of the images, wrong predictions first."""
    images, labels = test.tensors
    predicted = predict(network, images)
    return predicted, torch.argsort((predicted == labels).to(torch.int64), stable=True).tolist()


def draw(
    path: Path, losses: list[float], accuracies: list[float], network: Network, test: TensorDataset
) -> None:
    """The curves at the top, and digits with their predictions below, wrong predictions first."""
    images, labels = test.tensors
    predicted, order = wrong_first(network, test)

    figure = plt.figure(figsize=(10, 7), layout="constrained")
    curves, samples = figure.subfigures(2, 1, height_ratios=[3, 2])
    left, right = curves.subplots(1, 2)
    left.semilogy(losses, linewidth=0.8)
    left.set(title="training loss", xlabel="step", ylabel="cross entropy")
    right.plot(range(1, len(accuracies) + 1), [100 * value for value in accuracies], marker=".")
    right.axhline(100 * REQUIRED_ACCURACY, linestyle=":", color="grey")
    right.set(title="test accuracy", xlabel="epoch", ylabel="%")
    right.xaxis.get_major_locator().set_params(integer=True)
    for axes, index in zip(samples.subplots(2, 10).flat, order[:20], strict=True):
        guess, truth = int(predicted[index]), int(labels[index])
        axes.imshow(images[index, 0].numpy(), cmap="gray_r")
        axes.set_axis_off()
        if guess == truth:
            axes.set_title(f"{guess}")
        else:
            axes.set_title(f"{guess}, is {truth}", color="red")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def in_letters(image: Tensor) -> list[str]:
    """The image (8, 8) as eight lines of text, two characters a pixel."""
    return ["".join(" .:-=+*#%@"[round(9 * pixel)] * 2 for pixel in row) for row in image.tolist()]


def show(network: Network, test: TensorDataset, count: int = 4) -> None:
    """Prints some images side by side with their predictions, wrong predictions first."""
    images, labels = test.tensors
    predicted, order = wrong_first(network, test)
    titles = []
    for index in order[:count]:
        guess, truth = int(predicted[index]), int(labels[index])
        titles.append(f"read as {guess}" + ("" if guess == truth else f", is {truth}"))
    print("   ".join(f"{title:^16}" for title in titles).rstrip())
    for line in zip(*(in_letters(images[index, 0]) for index in order[:count]), strict=True):
        print("   ".join(line).rstrip())


def save_and_check(path: Path, network: Network, test: TensorDataset) -> float:
    """Saves the network, loads the file into a new network, and returns the accuracy of the new network."""
    torch.save(network.state_dict(), path)
    restored = Network()
    restored.load_state_dict(torch.load(path))
    return accuracy(restored, test)


def trace_step(
    path: Path, network: Network, optimizer: optim.Optimizer, images: Tensor, labels: Tensor
) -> None:
    """Records one training step as a timeline for ui.perfetto.dev or chrome://tracing."""
    network.train()
    with profile(record_shapes=True, profile_memory=True) as profiler:
        train_step(network, optimizer, images, labels)
    profiler.export_chrome_trace(str(path))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small convolutional network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for what is left behind")
    parser.add_argument(
        "--seed", type=int, default=0, help="of start values and order (default: %(default)s)"
    )
    given = parser.parse_args()
    if given.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {given.epochs}")
    return given


def main() -> int:
    given = arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(given.seed)
    # On two cores the loader's workers use one core; a network this small gains nothing from a second thread.
    torch.set_num_threads(1)

    training, test = digits()
    loader = DataLoader(
        training, batch_size=BATCH_SIZE, shuffle=True, drop_last=True, num_workers=2, persistent_workers=True
    )
    network = Network()
    optimizer = optim.Adam(network.parameters(), lr=LEARNING_RATE)
    print(f"data        {len(training)} handwritten digits to learn from, {len(test)} others to be tested on")
    print(f"network     {sum(p.numel() for p in network.parameters())} parameters in")
    print("            " + str(network).replace("\n", "\n            "))
    print(
        f"training    {given.epochs} times through the data, {BATCH_SIZE} images a step, from 2 worker processes"
    )

    start = time.perf_counter()
    losses, accuracies = train(network, optimizer, loader, test, given.epochs)
    seconds = time.perf_counter() - start

    draw(given.out / "digits.png", losses, accuracies, network, test)
    restored = save_and_check(given.out / "digits.pt", network, test)
    right = round(accuracies[-1] * len(test))
    print(f"            {seconds:.1f} s; the loss fell from {losses[0]:.2f} to {sum(losses[-20:]) / 20:.3f}")
    print(
        f"result      test accuracy {accuracies[-1]:.2%}: {right} of {len(test)} new digits are read correctly"
    )
    print()
    show(network, test)
    print()
    # This comes last, because it is another step of training.
    trace_step(given.out / "trace.json", network, optimizer, *next(iter(loader)))

    print(f"figure      {given.out / 'digits.png'}: loss, accuracy and twenty digits")
    print(f"checkpoint  {given.out / 'digits.pt'}: saved, loaded again: {restored:.2%}")
    print(f"trace       {given.out / 'trace.json'}: one training step; drop it on https://ui.perfetto.dev")
    if restored != accuracies[-1]:
        print("digits: the checkpoint does not score what the network did", file=sys.stderr)
        return 1
    if accuracies[-1] < REQUIRED_ACCURACY:
        print(f"digits: test accuracy {accuracies[-1]:.2%} is below {REQUIRED_ACCURACY:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
