"""Named changes of a recipe that every benchmark config may ask for."""

from typing import Any

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    # The three ablations of the paper.
    "-OT": {"e_step": {"pseudo_labels": "kmeans"}},
    "-Intra": {"m_step": {"intra": False}},
    "-Inter": {"m_step": {"inter": False}},
    # What our presets add to the paper or change of it, one by one.
    "-Contrast": {"contrast": {"epochs": 0}},
    "-Discount": {"contrast": {"discount": False}},
    "-MLM": {"pretrain": {"epochs": 0}},
    "+CE": {"pretrain": {"cross_entropy": True}},
    "-Replacement": {"contrast": {"token_replacement": 0.0}, "m_step": {"token_replacement": 0.0}},
    "-Density": {"start": {"prototypes": "kmeans", "restarts": 20}},
    "-Shrunk": {"e_step": {"prior": "moving"}},
    "-Prior": {"e_step": {"prior": "uniform"}},
    "-Marginals": {"e_step": {"prior": "uniform", "slack": 1.0}},
    "-Certainty": {"m_step": {"certainty": 0.0}},
    "-Size": {"optimiser": {"lr_for_size": 0}},
}
