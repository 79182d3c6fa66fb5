"""Names of PyTorch's modules that do not exist in ours of the same names, and what to write; see ``_habits``."""

from __future__ import annotations

from typing import Final

from reactgrad._habits import by_name

OF_MODULES: Final = by_name(
    ("type", "{x}.to('float32')"),
    ("bfloat16", "with rg.autocast('bfloat16'): around the calls"),
    ("share_memory", "Threads share a graph as it is: leave it out"),
    ("compile", "Calls are built once and replayed as plans: leave it out"),
    (
        "register_full_backward_hook register_backward_hook register_full_backward_pre_hook",
        "y.register_hook(function) on what the module returned, or on one of its params",
    ),
    ("named_params params", "{x}.named_parameters()"),
    (
        "fit predict compile_model",
        "A loop calls it: write y = {x}(batch), loss.backward(), opt.step()",
    ),
    ("summary", "print({x}), which shows shapes and counts"),
    ("save", "rg.save_checkpoint(path, model={x})"),
    ("load", "{x}.load_state_dict(rg.load_weights(path))"),
    ("grad gradients", "[one.grad for one in {x}.parameters()]"),
)

OF_OPTIMIZERS: Final = by_name(
    ("lr learning_rate momentum betas weight_decay", "{x}.param_groups[0]['{name}']"),
    ("parameters", "{x}.params"),
    ("minimize", "{x}.zero_grad(), loss.backward(), {x}.step()"),
    ("save", "rg.save_checkpoint(path, optimizer={x})"),
)

# What to write where a method of a module is assigned to.
SETTINGS_OF_MODULES: Final = by_name(
    ("train", "net.train({value})"),
    ("eval", "net.eval(), or net.train()"),
)

OF_NN: Final = by_name(
    ("clip_grad_norm_ clip_grad_value_", "rg.optim.{name}"),
    ("parameter", "rg.nn.Parameter(value)"),
    ("modules", "Layers are in rg.nn itself: write rg.nn.Linear(3, 2)"),
    ("Dense", "rg.nn.Linear(in_features, out_features)"),
    ("Buffer", "self.register_buffer(name, value)"),
    (
        "SyncBatchNorm",
        "rg.nn.BatchNorm1d, or with two or three axes of places BatchNorm2d and BatchNorm3d",
    ),
    ("UninitializedParameter", "rg.nn.Parameter(value) with a value of its shape"),
    ("parallel DataParallel DistributedDataParallel", "rg.distributed.DataParallel"),
    ("attention", "rg.nn.MultiheadAttention(embed_dim, num_heads)"),
)

OF_UTILS: Final = by_name(
    ("clip_grad_norm_ clip_grad_value_", "rg.optim.{name}"),
    ("clip_grad_norm", "rg.optim.clip_grad_norm_(net.parameters(), 1.0)"),
    (
        "weight_norm spectral_norm parametrize parametrizations",
        "the formula in forward, on params of the module: self.scale * self.v / norm(self.v)",
    ),
    ("fuse_conv_bn_eval fuse_linear_bn_eval", "net.eval()"),
    ("stateless", "net.load_state_dict(state), or a fork: with g.whatif({param: value})"),
)

OF_FUNCTIONAL: Final = by_name(
    ("softmax_cross_entropy", "cross_entropy(scores, labels)"),
    ("log_sigmoid", "logsigmoid(x)"),
    (
        "upsample upsample_nearest upsample_bilinear",
        "interpolate(x, scale_factor=2, mode='nearest')",
    ),
    ("multi_head_attention_forward", "rg.nn.MultiheadAttention(embed_dim, num_heads)"),
)

OF_OPTIM: Final = by_name(
    ("lr_scheduler", "Schedules are in rg.optim itself: write rg.optim.StepLR(opt, 10)"),
    ("swa_utils", "net.load_state_dict(state) with the mean of state dicts, path by path"),
    ("SparseAdam", "rg.optim.Adam(params)"),
    ("Adafactor Muon", "a subclass of rg.optim.Optimizer with a rule of its own"),
    ("LearningRateScheduler", "rg.optim.LambdaLR(opt, function)"),
)

OF_DATA: Final = by_name(
    ("TensorDataset", "rg.data.ArrayDataset(X, y)"),
    ("IterableDataset", "a class with __iter__, which rg.data.DataLoader takes"),
    (
        "dataset dataloader",
        "Datasets and loaders are in rg.data itself: write rg.data.DataLoader(...)",
    ),
    (
        "get_worker_info",
        "rg.data.batch_rng() for random numbers that belong to a batch; workers are threads",
    ),
    ("DistributedSampler", "rg.data.Subset(dataset, range(rank, len(dataset), size))"),
    ("default_convert", "numpy.asarray(value)"),
    (
        "transforms",
        "Transforms are in rg.data itself: write rg.data.Compose([rg.data.ToFloat(), rg.data.Normalize(mean, std)])",
    ),
    (
        "datasets vision MNIST CIFAR10 FashionMNIST",
        "rg.data.ArrayDataset(X, y) of arrays, or rg.data.ImageFolder(path)",
    ),
    ("StackDataset", "rg.data.ArrayDataset(X, y)"),
    ("ChainDataset", "rg.data.ConcatDataset(datasets)"),
    (
        "Resize RandomResizedCrop RandomRotation ColorJitter ToTensor Lambda",
        "a function of an array: rg.data.Compose([function, ...])",
    ),
)
