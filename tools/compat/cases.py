"""The cases of `nox -s compat`: for each third-party package a small model, and how the package trains it for one step.

Each function returns a model and a function that trains it and returns the numbers to compare. Models are small, have no
dropout, and get their data from NumPy, so that PyTorch and rushlight compute the same thing from the same parameters.
Packages are imported only when their function runs: `torch` is PyTorch in one environment and rushlight in the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Train = Callable[[], list[float]]
Case = Callable[[], tuple[Any, Train]]

# Adam's eps. With the usual 1e-8, a gradient that consists of rounding errors would cause a step of the full learning rate.
EPS = 1e-4


def _images(count: int, size: int) -> Any:
    import torch

    return torch.from_numpy(
        np.random.RandomState(1).standard_normal((count, 3, size, size)).astype(np.float32)
    )


def _labels(count: int, classes: int) -> Any:
    import torch

    return torch.from_numpy(np.random.RandomState(2).randint(0, classes, count))


def _rows(count: int, width: int) -> Any:
    import torch

    return torch.from_numpy(np.random.RandomState(3).standard_normal((count, width)).astype(np.float32))


def _tokens(count: int, length: int, vocabulary: int) -> Any:
    import torch

    return torch.from_numpy(np.random.RandomState(4).randint(0, vocabulary, (count, length)))


def timm() -> tuple[Any, Train]:
    """Return a ResNet by name, with the package's loss, optimizer, schedule and averaged model."""
    import timm
    from timm.loss import LabelSmoothingCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.scheduler import CosineLRScheduler
    from timm.utils import ModelEmaV3

    model = timm.create_model("resnet10t", num_classes=5)

    def train() -> list[float]:
        model.train()
        optimizer = create_optimizer_v2(model, opt="sgd", lr=1e-2, momentum=0.9, weight_decay=1e-4)
        schedule = CosineLRScheduler(optimizer, t_initial=4, warmup_t=1, warmup_lr_init=1e-4)
        average = ModelEmaV3(model, decay=0.5)
        loss = LabelSmoothingCrossEntropy(0.1)(model(_images(4, 32)), _labels(4, 5))
        loss.backward()
        optimizer.step()
        schedule.step(1)
        average.update(model)
        total = sum(p.double().sum().item() for p in average.module.parameters())
        return [loss.item(), optimizer.param_groups[0]["lr"], total]

    return model, train


def transformers() -> tuple[Any, Train]:
    """Return a GPT-2 with tied weights and its own loss, and greedy generation after the step."""
    from torch.optim import AdamW
    from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

    config = GPT2Config(
        vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)

    def train() -> list[float]:
        model.train()
        optimizer = AdamW(model.parameters(), lr=1e-2, eps=EPS)
        schedule = get_linear_schedule_with_warmup(optimizer, 0, 10)
        tokens = _tokens(2, 12, 40)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        model.eval()
        words = model.generate(tokens[:, :4], max_new_tokens=4, do_sample=False, pad_token_id=0)
        return [loss.item(), *words.flatten().tolist()]

    return model, train


def lightning() -> tuple[Any, Train]:
    """Return a LightningModule that a Trainer fits for one epoch."""
    import lightning
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    losses: list[float] = []

    class Classifier(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))

        def training_step(self, batch: Any, index: int) -> Any:
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.layers(x), y)
            losses.append(loss.item())
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]

    model = Classifier()

    def train() -> list[float]:
        trainer = lightning.Trainer(
            max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=0.5,
        )  # fmt: skip
        trainer.fit(model, DataLoader(TensorDataset(_rows(8, 6), _labels(8, 3)), batch_size=4))
        return [*losses, float(trainer.callback_metrics["loss"])]

    return model, train


def peft() -> tuple[Any, Train]:
    """A BERT of transformers with LoRA adapters; only the adapters are trained."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=3,
    )  # fmt: skip
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=["query", "value"], task_type="SEQ_CLS")
    model = get_peft_model(BertForSequenceClassification(config), lora)

    def train() -> list[float]:
        model.train()
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.Adam(trained, lr=1e-2, eps=EPS)
        loss = model(input_ids=_tokens(4, 8, 40), labels=_labels(4, 3)).loss
        loss.backward()
        optimizer.step()
        return [loss.item(), len(trained), sum(p.numel() for p in trained)]

    return model, train


def accelerate() -> tuple[Any, Train]:
    """Return a loop that an Accelerator prepares, with accumulation and clipping."""
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))

    def train() -> list[float]:
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
        data = DataLoader(TensorDataset(_rows(8, 6), _labels(8, 3)), batch_size=4)
        wrapped, optimizer, data = accelerator.prepare(model, optimizer, data)
        losses = []
        for x, y in data:
            with accelerator.accumulate(wrapped):
                loss = torch.nn.functional.cross_entropy(wrapped(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    losses.append(float(accelerator.clip_grad_norm_(wrapped.parameters(), 1.0)))
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    return model, train


def torchmetrics() -> tuple[Any, Train]:
    """Metrics of a model's predictions before and after a step."""
    import torch
    import torchmetrics

    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))

    def train() -> list[float]:
        x, y = _rows(32, 6), _labels(32, 4)
        kinds = ("Accuracy", "F1Score", "AUROC", "ConfusionMatrix", "CalibrationError")
        metrics = torchmetrics.MetricCollection(
            [getattr(torchmetrics, kind)(task="multiclass", num_classes=4) for kind in kinds]
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(2):
            scores = model(x)
            metrics.update(scores.softmax(-1).detach(), y)
            loss = torch.nn.functional.cross_entropy(scores, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [
            number for value in metrics.compute().values() for number in value.double().flatten().tolist()
        ]

    return model, train


def torch_geometric() -> tuple[Any, Train]:
    """Graph convolutions, attention and pooling over a batch of two graphs."""
    import torch
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GATConv, GCNConv, global_mean_pool

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GCNConv(6, 8)
            self.second = GATConv(8, 4, heads=2)
            self.head = torch.nn.Linear(8, 3)

        def forward(self, data: Any) -> Any:
            x = self.first(data.x, data.edge_index).relu()
            x = self.second(x, data.edge_index).relu()
            return self.head(global_mean_pool(x, data.batch))

    model = Network()

    def train() -> list[float]:
        x = _rows(12, 6)
        edges = torch.from_numpy(np.random.RandomState(5).randint(0, 6, (2, 14)))
        batch = Batch.from_data_list(
            [Data(x=x[:6], edge_index=edges), Data(x=x[6:], edge_index=edges.flip(0))]
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=EPS)
        loss = torch.nn.functional.cross_entropy(model(batch), _labels(2, 3))
        loss.backward()
        optimizer.step()
        return [loss.item()]

    return model, train


def gpytorch() -> tuple[Any, Train]:
    """Return an exact Gaussian process: two steps of its hyperparameters, and a prediction."""
    import gpytorch
    import torch

    x = torch.linspace(0, 1, 16)
    y = torch.sin(6 * x)

    class Process(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(x, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, points: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(points), self.covar_module(points)
            )

    model = Process()

    def train() -> list[float]:
        model.train()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = -objective(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            prediction = model.likelihood(model(torch.tensor([0.25, 1.5])))
        return [*losses, *prediction.mean.tolist(), *prediction.variance.tolist()]

    return model, train


def segmentation_models_pytorch() -> tuple[Any, Train]:
    """Return a U-Net with a ResNet as encoder, and the Dice loss."""
    import segmentation_models_pytorch as smp
    import torch

    model = smp.Unet("resnet18", encoder_weights=None, decoder_channels=(32, 16, 8, 8, 8), classes=1)

    def train() -> list[float]:
        # In float32, rounding decides on which side of a relu some elements are, in both libraries.
        model.double().train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=EPS)
        images = _images(2, 64).double()
        masks = (images.mean(1, keepdim=True) > 0).double()
        scores = model(images)
        loss = smp.losses.DiceLoss("binary")(scores, masks)
        loss.backward()
        optimizer.step()
        counts = smp.metrics.get_stats(scores.sigmoid(), masks.long(), mode="binary", threshold=0.5)
        return [loss.item(), smp.metrics.iou_score(*counts, reduction="micro").item()]

    return model, train


def skorch() -> tuple[Any, Train]:
    """Return a scikit-learn classifier around a module."""
    import torch
    from skorch import NeuralNetClassifier

    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3), torch.nn.Softmax(-1)
    )

    def train() -> list[float]:
        classifier = NeuralNetClassifier(
            model, max_epochs=2, lr=0.1, batch_size=8, optimizer=torch.optim.SGD, optimizer__momentum=0.9,
            train_split=None, verbose=0, iterator_train__shuffle=False, warm_start=True,
        )  # fmt: skip
        x, y = _rows(16, 6).numpy(), _labels(16, 3).numpy()
        classifier.fit(x, y)
        return [*classifier.history[:, "train_loss"], *classifier.predict_proba(x[:2]).flatten().tolist()]

    return model, train


def einops() -> tuple[Any, Train]:
    """Rearrangements and einsums as layers and as functions."""
    import torch
    from einops import rearrange, repeat
    from einops.layers.torch import EinMix, Rearrange, Reduce

    model = torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=8),
        torch.nn.GELU(),
        Reduce("b t d -> b d", "mean"),
        torch.nn.Linear(8, 3),
    )

    def train() -> list[float]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        images = rearrange(_images(4, 16), "b c h w -> b c w h")
        scores = model(repeat(images, "b c h w -> (two b) c h w", two=2))
        loss = torch.nn.functional.cross_entropy(scores, _labels(8, 3))
        loss.backward()
        optimizer.step()
        return [loss.item()]

    return model, train


def ultralytics() -> tuple[Any, Train]:
    """Return the smallest YOLO: its loss over two images with three boxes, and the boxes that it finds after the step."""
    import torch
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import DetectionModel
    from ultralytics.utils.nms import non_max_suppression

    model = DetectionModel("yolov8n.yaml", nc=4, verbose=False)
    model.args = get_cfg()

    def train() -> list[float]:
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
        images = _images(2, 64).abs().clamp(max=1)
        batch = {
            "img": images,
            "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
            "cls": torch.tensor([[0.0], [2.0], [3.0]]),
            "bboxes": torch.tensor([[0.4, 0.4, 0.3, 0.5], [0.6, 0.7, 0.5, 0.4], [0.5, 0.5, 0.6, 0.6]]),
        }
        loss, _ = model(batch)
        loss.sum().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            boxes = non_max_suppression(model(images)[0], conf_thres=0.0, max_det=3)
        return [*loss.tolist(), *(float(len(found)) for found in boxes)]

    return model, train


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        timm, transformers, lightning, peft, accelerate, torchmetrics, torch_geometric, gpytorch,
        segmentation_models_pytorch, skorch, einops, ultralytics,
    )
}  # fmt: skip
