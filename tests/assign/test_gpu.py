"""What runs on the CPU runs on a GPU too, with the same result."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign import (
    cosine_blocks,
    kmeans,
    order_by_known,
    semisup_kmeans,
    sinkhorn,
    uniform_prior,
    unlabelled_marginal,
    update_prior,
)
from ronid.losses import (
    inter_cluster_loss,
    intra_cluster_loss,
    neighbour_mask,
    supervised_contrastive_loss,
    update_prototypes,
)

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def problem() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    prototypes = normalize(torch.randn(8, 16, generator=generator), dim=1)
    owner = torch.randint(8, (500,), generator=generator)
    noise = 0.1 * torch.randn(500, 16, generator=generator)
    return normalize(prototypes[owner] + noise, dim=1), prototypes, owner


@pytest.mark.parametrize("kernel_bytes", [0, 2**30])
def test_plan_is_that_of_the_cpu(kernel_bytes: int) -> None:
    embeddings, prototypes, owner = problem()
    prior = update_prior(uniform_prior(8), owner, momentum=0.5)
    expected = sinkhorn(embeddings @ prototypes.T, prior, eta=0.05)
    scores = cosine_blocks(embeddings.cuda(), prototypes.cuda())
    plan = sinkhorn(scores, prior, eta=0.05, kernel_bytes=kernel_bytes, block_rows=64)
    assert plan.labels().cpu().equal(expected.labels())
    marginal = unlabelled_marginal(prior.cuda(), torch.zeros(8).cuda(), 500)
    torch.testing.assert_close(marginal.cpu(), prior)


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_clusters_are_found_with_a_generator_of_either_place(place: str) -> None:
    embeddings, prototypes, owner = problem()
    generator = torch.Generator(place).manual_seed(0)
    found = kmeans(embeddings.cuda(), 8, generator=generator)
    ordered = order_by_known(found.centroids, prototypes.cuda())
    assert (embeddings.cuda() @ ordered.T).argmax(dim=1).cpu().equal(owner)
    targets = torch.where((torch.arange(500) % 2 == 0) & (owner < 4), owner, -1)
    known = semisup_kmeans(embeddings.cuda(), targets, 8, generator=generator)
    assert known.labels.cpu()[owner < 4].equal(owner[owner < 4])


def test_losses_are_those_of_the_cpu() -> None:
    embeddings, prototypes, owner = problem()
    neighbours = torch.arange(500).roll(1)[:, None]

    def losses(place: str) -> Tensor:
        s, mu, y = (x.to(place) for x in (embeddings, prototypes, owner))
        updated = update_prototypes(mu, s, y, 0.99)
        mask = neighbour_mask(torch.arange(50, device=place), neighbours.to(place), y)
        return torch.stack(
            [
                intra_cluster_loss(s, updated, y, 0.07),
                inter_cluster_loss(updated, 0.07),
                supervised_contrastive_loss(s[:50], mask, 0.07),
            ]
        )

    torch.testing.assert_close(losses("cuda").cpu(), losses("cpu"), atol=1e-3, rtol=1e-3)
