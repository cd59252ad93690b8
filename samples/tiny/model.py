"""MolmoE's structure at 2.7 million parameters, for training: vision tower, pooling, projector, mixture-of-experts language model."""
import torch
from torch import nn
from torch.nn import functional as F

VIT_WIDTH, VIT_HEADS, VIT_MLP, VIT_BLOCKS, TAPS = 96, 2, 288, 5, (3, 1)  # the last block is never used, as in the real model
D, HEADS, BLOCKS, EXPERTS, EXPERT_WIDTH, TOP_K = 128, 2, 5, 8, 96, 2


def matrix(rows, cols, *batch, gain=1.0):
    return nn.Parameter(torch.randn(*batch, rows, cols) * gain * cols ** -0.5)


def vector(n, value=0.0):
    return nn.Parameter(torch.full((n,), value))


class Attention(torch.autograd.Function):
    """softmax(q k^T / sqrt(head) + mask) v over [batch, t, head], the probabilities kept: on a CPU half the time of the library's in bfloat16"""

    @staticmethod
    def forward(ctx, q, k, v, mask):
        q = q * q.shape[-1] ** -0.5
        p = torch.softmax(torch.bmm(q, k.transpose(1, 2)) if mask is None else torch.baddbmm(mask, q, k.transpose(1, 2)), -1)
        ctx.save_for_backward(q, k, v, p)
        return torch.bmm(p, v)

    @staticmethod
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        s = torch._softmax_backward_data(torch.bmm(g, v.transpose(1, 2)), p, -1, p.dtype)
        return torch.bmm(s, k) * q.shape[-1] ** -0.5, torch.bmm(s.transpose(1, 2), q), torch.bmm(p.transpose(1, 2), g), None


class VitBlock(nn.Module):
    def __init__(self):
        super().__init__()
        w = VIT_WIDTH
        self.qkv, self.qkv_bias = matrix(w, w, 3), nn.Parameter(torch.zeros(3, w))
        self.out, self.out_bias = matrix(w, w, gain=0.5), vector(w)
        self.up, self.up_bias = matrix(VIT_MLP, w), vector(VIT_MLP)
        self.down, self.down_bias = matrix(w, VIT_MLP, gain=0.5), vector(w)
        self.norm1, self.norm1_bias, self.norm2, self.norm2_bias = vector(w, 1.0), vector(w), vector(w, 1.0), vector(w)

    def forward(self, x, kind):
        """kind: type of the products; the residual, the norms and the weights themselves are float32"""
        n, t, w = x.shape

        def linear(y, weight, bias):
            return F.linear(y.to(kind), weight.to(kind), bias.to(kind))

        h = linear(F.layer_norm(x, (w,), self.norm1, self.norm1_bias, 1e-5), self.qkv.view(3 * w, w), self.qkv_bias.view(-1))
        q, k, v = h.view(n, t, 3, VIT_HEADS, w // VIT_HEADS).permute(2, 0, 3, 1, 4).reshape(3, n * VIT_HEADS, t, w // VIT_HEADS)
        h = Attention.apply(q, k, v, None) if kind == torch.bfloat16 else F.scaled_dot_product_attention(q, k, v)
        x = x + linear(h.view(n, VIT_HEADS, t, w // VIT_HEADS).transpose(1, 2).reshape(n, t, w), self.out, self.out_bias)
        # QuickGELU h * sigmoid(1.702 h) as silu(1.702 h) / 1.702, the factors on the weights: two passes over memory less
        h = linear(F.layer_norm(x, (w,), self.norm2, self.norm2_bias, 1e-5), 1.702 * self.up, 1.702 * self.up_bias)
        return x + linear(F.silu(h), self.down / 1.702, self.down_bias)


class Tower(nn.Module):
    """patches [n, 576, 588] -> features [n, 144, D]: everything before the language model"""

    def __init__(self):
        super().__init__()
        w = VIT_WIDTH
        self.class_embedding = nn.Parameter(torch.randn(w) * 0.1)
        self.positions = nn.Parameter(torch.randn(577, w) * 0.1)
        self.patch = matrix(w, 588)
        self.pre_norm, self.pre_norm_bias = vector(w, 1.0), vector(w)
        self.blocks = nn.ModuleList(VitBlock() for _ in range(VIT_BLOCKS))
        self.pool_q, self.pool_k, self.pool_v, self.pool_out = matrix(w, 2 * w), matrix(w, 2 * w), matrix(w, 2 * w), matrix(w, w)
        self.pool_q_bias, self.pool_k_bias, self.pool_v_bias, self.pool_out_bias = vector(w), vector(w), vector(w), vector(w)
        self.w1, self.w3, self.w2 = matrix(EXPERT_WIDTH, w), matrix(EXPERT_WIDTH, w), matrix(D, EXPERT_WIDTH)

    def forward(self, patches, kind=torch.float32):
        n, w = patches.shape[0], VIT_WIDTH
        x = F.linear(patches.to(kind), self.patch.to(kind)).float()
        x = torch.cat([self.class_embedding.expand(n, 1, w), x], 1) + self.positions
        x = F.layer_norm(x, (w,), self.pre_norm, self.pre_norm_bias, 1e-5)
        kept = []
        for block in self.blocks[:VIT_BLOCKS - 1]:
            x = block(x, kind)
            kept.append(x)
        x = torch.cat([kept[t] for t in TAPS], -1)[:, 1:]  # pad_embed is all zero: fill and crop leaves no padding
        x = x.view(n, 12, 2, 12, 2, 2 * w).permute(0, 1, 3, 2, 4, 5).reshape(n * 144, 4, 2 * w)
        head = w // VIT_HEADS
        q = F.linear(x.mean(1, keepdim=True), self.pool_q, self.pool_q_bias).view(-1, 1, VIT_HEADS, head)
        y = x.to(kind)
        k = F.linear(y, self.pool_k.to(kind), self.pool_k_bias.to(kind)).float().view(-1, 4, VIT_HEADS, head)
        v = F.linear(y, self.pool_v.to(kind), self.pool_v_bias.to(kind)).float().view(-1, 4, VIT_HEADS, head)
        a = torch.softmax((q * k).sum(-1) * head ** -0.5, 1)  # written out: a library call for 4 keys is slow
        h = F.linear((a[..., None] * v).sum(1).reshape(-1, w), self.pool_out, self.pool_out_bias)
        return F.linear(F.silu(F.linear(h, self.w1)) * F.linear(h, self.w3), self.w2).view(n, 144, D)


def rms(x, weight=None):
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    return x if weight is None else x * weight


def angles(positions):
    """cosines and sines of the rotary embedding for positions [..., t]"""
    half = D // HEADS // 2
    angle = positions[..., None].float() * 10000.0 ** (-torch.arange(half) / half)
    return angle.cos(), angle.sin()


def rotate(x, turn):
    """x [n, heads, t, 64]: pairs (i, i + half)"""
    a, b = x.chunk(2, -1)
    c, s = turn
    return torch.cat([a * c - b * s, b * c + a * s], -1)


class MoeBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = matrix(D, D, 3), matrix(D, D, gain=0.5)
        self.q_norm, self.k_norm, self.attn_norm, self.ff_norm = vector(D, 1.0), vector(D, 1.0), vector(D, 1.0), vector(D, 1.0)
        self.router = matrix(EXPERTS, D)
        self.gate, self.up = matrix(EXPERT_WIDTH, D, EXPERTS), matrix(EXPERT_WIDTH, D, EXPERTS)
        self.down = matrix(D, EXPERT_WIDTH, EXPERTS)
        # repeats an expert's weight over its columns by a product: the broadcast and its sum backwards are slow in bfloat16
        self.register_buffer("spread", torch.eye(EXPERTS).repeat_interleave(EXPERT_WIDTH, 0), persistent=False)

    def forward(self, x, turn, mask, top_k, first=0, cache=None):
        """first: only rows from there on are wanted. mask: None is causal, else added to the scores, bfloat16 [n * heads, t, t], and the
        products are bfloat16 too (training). cache: dict that keeps keys and values"""
        n, kind = x.shape[0], torch.float32 if mask is None else torch.bfloat16

        def linear(y, weight):
            return F.linear(y.to(kind), weight.to(kind))

        h = rms(x, self.attn_norm).to(kind)
        q, (k, v) = linear(h[:, first:], self.qkv[0]), linear(h, self.qkv[1:].reshape(2 * D, D)).chunk(2, -1)
        q, k = rms(q.float(), self.q_norm), rms(k.float(), self.k_norm)
        q, k, v = (y.reshape(n, -1, HEADS, D // HEADS).transpose(1, 2) for y in (q, k, v))
        q, k = rotate(q, [y[..., first:, :] for y in turn]), rotate(k, turn)
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        if mask is None:
            h = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1 and first == 0,
                                               attn_mask=None if first == 0 else torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(first))
        else:
            q, k, v = (y.to(kind).reshape(n * HEADS, -1, D // HEADS) for y in (q, k, v))
            h = Attention.apply(q, k, v, mask[:, first:]).view(n, HEADS, -1, D // HEADS)
        x = x[:, first:] + linear(h.transpose(1, 2).reshape(n, -1, D), self.out)
        h = rms(x, self.ff_norm)
        p = torch.softmax(F.linear(h, self.router), -1)
        chosen = torch.zeros_like(p).scatter_(-1, p.topk(top_k, -1).indices, 1.0)
        weight = linear(p * chosen, self.spread)  # not renormalised, as in the real model
        h = h.to(kind)
        g, u = linear(h, self.gate.reshape(-1, D)), linear(h, self.up.reshape(-1, D))
        y = linear(F.silu(g) * u * weight, self.down.permute(1, 0, 2).reshape(D, EXPERTS * EXPERT_WIDTH))
        # balance: share of tokens times mean probability, 1 when even
        balance = EXPERTS / top_k * (chosen.mean((0, 1)) * p.mean((0, 1))).sum()
        return x + y, balance


class Llm(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocabulary, D) * 0.5)
        self.head = nn.Parameter(torch.randn(vocabulary, D) * 0.02)
        self.final_norm = vector(D, 1.0)
        self.blocks = nn.ModuleList(MoeBlock() for _ in range(BLOCKS))

    def forward(self, x, positions, mask, top_k, active=None, first=0, caches=None):
        """embedded tokens -> what the head reads, rows from `first` on, and the mean balance of the routers"""
        active = list(range(BLOCKS)) if active is None else active
        balance, turn = 0.0, angles(positions)
        for i in active:
            x, b = self.blocks[i](x, turn, mask, top_k, first if i == active[-1] else 0, None if caches is None else caches[i])
            balance = balance + b / len(active)
        return rms(x, self.final_norm), balance

    @torch.no_grad()
    def answer(self, ids, features, where, eos, top_k=TOP_K, active=None, limit=8):
        """greedy: ids [t], features [p, D] added at the positions `where`"""
        x = self.embedding[ids].clone()
        x[where] += features
        caches = [{} for _ in self.blocks]
        positions, out = torch.arange(len(ids)), []
        x = x[None]
        for step in range(limit):
            h, _ = self(x, positions, None, top_k, active, first=x.shape[1] - 1, caches=caches)
            token = int((self.head @ h[0, -1]).argmax())
            out.append(token)
            if token == eos:
                break
            x, positions = self.embedding[token][None, None], torch.tensor([len(ids) + step])
        return out


def muon_split(module):
    """matrices for Muon (also batches of them); the rest for AdamW"""
    apart = {"class_embedding", "positions", "embedding", "head", "router", "qkv_bias"}
    matrices, rest = [], []
    for name, p in module.named_parameters():
        (matrices if p.ndim >= 2 and name.split(".")[-1] not in apart else rest).append(p)
    return matrices, rest


class Muon:
    """momentum, made orthogonal by five Newton-Schulz steps (Jordan et al., 2024); takes 2-D matrices and batches of them"""

    def __init__(self, parameters, lr, kind=torch.float32):
        self.parameters, self.lr, self.kind = list(parameters), lr, kind  # kind: type of the Newton-Schulz products
        self.momenta = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self, factor):
        groups = {}
        for p, m in zip(self.parameters, self.momenta):
            if p.grad is None:
                continue
            m.mul_(0.95).add_(p.grad)
            g = (p.grad + 0.95 * m).reshape(-1, *p.shape[-2:])
            tall = g.shape[1] > g.shape[2]
            g = g.transpose(1, 2) if tall else g
            groups.setdefault(g.shape[1:], []).append((p, g, tall))
        for items in groups.values():
            x = torch.cat([g for _, g, _ in items])
            x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(self.kind)
            for _ in range(5):
                a = x @ x.transpose(1, 2)
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            at = 0
            for p, g, tall in items:
                y = x[at:at + g.shape[0]].float()
                at += g.shape[0]
                y = y.transpose(1, 2) if tall else y
                p.add_(y.reshape(p.shape), alpha=-self.lr * factor * max(1.0, p.shape[-2] / p.shape[-1]) ** 0.5)
            # a block that was dropped has no gradient and stays as it is

    def state(self):
        return self.momenta

    def load(self, momenta):
        for m, saved in zip(self.momenta, momenta):
            m.copy_(saved)
