"""A policy that balances poles on carts, trained by REINFORCE (Williams 1992) in an environment of this program."""

from __future__ import annotations

import sys

from common import main

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.distributions import Categorical

CARTS, STEPS = 64, 200


def step(state: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """The states (N, 4) a fiftieth of a second later, and which of them have failed (Barto, Sutton and Anderson 1983)."""
    _, speed, angle, turning = state.unbind(1)
    force = torch.where(action == 1, 10.0, -10.0)
    sine, cosine = angle.sin(), angle.cos()
    pushed = (force + 0.05 * turning**2 * sine) / 1.1  # the pole has a mass of 0.1, the cart of 1.0
    turning_change = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    speed_change = pushed - 0.05 * turning_change * cosine / 1.1
    changes = torch.stack([speed, speed_change, turning, turning_change], 1)
    new = state + 0.02 * changes
    return new, (new[:, 0].abs() > 2.4) | (new[:, 2].abs() > 0.21)


def play(policy: nn.Module, steps: int, greedy: bool = False) -> tuple[Tensor, Tensor]:
    """The log-probabilities of the actions, and 1 while the pole of a cart stands: both (steps, CARTS)."""
    state = torch.rand(CARTS, 4) * 0.1 - 0.05
    standing = torch.ones(CARTS, dtype=torch.bool)
    log_probabilities, stood = [], []
    for _ in range(steps):
        actions = Categorical(logits=policy(state))
        action = actions.probs.argmax(1) if greedy else actions.sample()
        log_probabilities.append(actions.log_prob(action))
        stood.append(standing)
        state, failed = step(state, action)
        standing = standing & ~failed
        if not standing.any():
            break
    return torch.stack(log_probabilities), torch.stack(stood).float()


def loss_of(log_probabilities: Tensor, rewards: Tensor, discount: float = 0.98) -> Tensor:
    """The negative log-probabilities, weighted by the differences between the returns and their mean."""
    returns, total = [], torch.zeros(CARTS)
    for reward in rewards.flip(0):
        total = reward + discount * total
        returns.append(total)
    followed = torch.stack(returns).flip(0)
    mean = (followed * rewards).sum() / rewards.sum()
    spread = ((followed - mean).square() * rewards).sum().div(rewards.sum()).sqrt()
    return -(log_probabilities * (followed - mean) / (spread + 1e-6) * rewards).sum() / rewards.sum()


def run(short: bool) -> tuple[float, list[float], None]:
    """Train. The metric is the mean number of steps, at most 200, until a pole falls if the likelier action is taken."""
    torch.set_num_threads(1)  # the tensors are too small for a second thread
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths: list[float] = []
    for _ in range(3 if short else 100):
        log_probabilities, rewards = play(policy, 30 if short else STEPS)
        loss = loss_of(log_probabilities, rewards)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(rewards.sum(0).mean().item())
    with torch.no_grad():
        _, rewards = play(policy, 30 if short else STEPS, greedy=True)
    return rewards.sum(0).mean().item(), lengths, None


if __name__ == "__main__":
    sys.exit(main(run, "steps until a pole falls", 190.0, progress="steps until a pole falls"))
