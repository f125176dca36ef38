"""What a drafter says at work is what the net said as it learned: two programs, one drafter folder between them."""

from pathlib import Path

import torch
from tests.models.lean import test_feature_draft_model as feature
from tests.models.lean import test_projected_embedding as projected

from lope.core.draft import EMPTY, ROOT, chain
from lope.core.prompt import Prompt
from lope.core.protocols import Step
from lope.models.drafter_folder import DrafterFolder
from lope.training.eagle_net import EagleNet
from lope.training.standalone_net import StandaloneNet

TOLERANCE = 1e-4
DRAFTED = (7, 30, 11)


@torch.no_grad()
def test_eagle(tmp_path: Path) -> None:
    """Root and three steps below it, the last rows of a text of 20 that was read in pieces."""
    told = feature.Told.open(feature.made(), Prompt(feature.words(12)))
    told.round(EMPTY, ())
    for number in range(3):
        tree = feature.tree_of(feature.CHAIN, number)
        feature.check([told], [tree])
        told.round(tree, tree.path(number))
    text = [int((row == feature.TABLE).all(dim=1).nonzero()[0, 0]) for row in told.embedded]
    net = EagleNet(feature.ABOUT.decoder, feature.TABLE, feature.TENSORS["kept"], len(feature.ABOUT.layers))
    net.begin(told.features)
    net.restore(feature.TENSORS)
    DrafterFolder.write(tmp_path, feature.ABOUT, net.tensors())
    for name, tensor in DrafterFolder.read(tmp_path).tensors.items():
        torch.testing.assert_close(tensor, feature.TENSORS[name], atol=1e-5, rtol=1e-5)
    tokens = torch.tensor([[*text, *DRAFTED]])
    features = torch.cat([told.features, torch.zeros(tokens.shape[1] - len(told.features), told.features.shape[1])])
    ones, position = torch.zeros_like(tokens), torch.arange(tokens.shape[1])[None]
    roots = torch.tensor([[len(text) - 2]])
    learned = [net.logits(x[0, 0]) for x in net(features[None], tokens, ones, position, roots, len(DRAFTED) + 1)]
    draft = chain(DRAFTED)
    for node, expected in zip(range(ROOT, len(draft)), learned, strict=True):
        [(rows, _)] = told.model.step([Step(told.session, draft, (node,))])
        torch.testing.assert_close(rows.values[0], expected, atol=TOLERANCE, rtol=0)


@torch.no_grad()
def test_standalone() -> None:
    text = (*projected.words(20), *DRAFTED)
    net = StandaloneNet(projected.ABOUT.decoder, projected.TABLE, projected.TENSORS["kept"])
    for name, parameter in net.named_parameters():
        parameter.copy_(projected.TENSORS[name])
    tokens = torch.tensor([text])
    learned = net.lm_head(net(tokens, torch.zeros_like(tokens), torch.arange(len(text))[None]))[0, -4:]
    session = projected.MODEL.open(Prompt(text[:20]), None)  # type: ignore[arg-type]
    draft = chain(DRAFTED)
    for node, expected in zip(range(ROOT, len(draft)), learned, strict=True):
        [(rows, _)] = projected.MODEL.step([Step(session, draft, (node,))])
        torch.testing.assert_close(rows.values[0], expected, atol=TOLERANCE, rtol=0)
