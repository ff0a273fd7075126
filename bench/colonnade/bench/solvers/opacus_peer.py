"""Linear regression by Opacus's DP-SGD, for comparison; PyTorch is never installed by this project.

The settings were chosen by R2 on the measured problem itself, among 12, which flatters it.
"""

from typing import Any, Self

import numpy as np
import torch  # type: ignore[import-not-found]
from opacus import PrivacyEngine  # type: ignore[import-not-found]

from colonnade.core.arrays import FloatArray

EPOCHS, BATCH, RATE, CLIP = 5, 4000, 10.0, 0.03


class OpacusRegression:
    """Fit and score like scikit-learn's estimators."""

    def __init__(self, bound: float, span: float, *, epsilon: float, delta: float) -> None:
        self._bound, self._span = bound, span
        self._epsilon, self._delta = epsilon, delta
        self._coef: FloatArray = np.zeros(0)
        self._intercept = 0.0

    def fit(self, features: FloatArray, label: FloatArray) -> Self:
        """Fit with (epsilon, delta) for one row more or less."""
        data = torch.utils.data.TensorDataset(
            self._tensor(np.clip(features / self._bound, -1.0, 1.0)),
            self._tensor(np.clip(label / self._span, -1.0, 1.0)[:, None]),
        )
        module: Any = torch.nn.Linear(features.shape[1], 1)
        torch.nn.init.zeros_(module.weight)
        torch.nn.init.zeros_(module.bias)
        module, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=RATE),
            data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
            target_epsilon=self._epsilon,
            target_delta=self._delta,
            epochs=EPOCHS,
            max_grad_norm=CLIP,
        )
        for _ in range(EPOCHS):
            for rows, target in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(module(rows), target).backward()
                optimizer.step()
        weight, bias = (part.detach().numpy() for part in module.parameters())
        self._coef = weight[0].astype(float) * self._span / self._bound
        self._intercept = float(bias[0]) * self._span
        return self

    def score(self, features: FloatArray, label: FloatArray) -> float:
        """Return R2."""
        left = label - self._intercept - features @ self._coef
        return float(1.0 - left.var() / label.var() - left.mean() ** 2 / label.var())

    @staticmethod
    def _tensor(values: FloatArray) -> Any:
        return torch.as_tensor(values, dtype=torch.float32)
