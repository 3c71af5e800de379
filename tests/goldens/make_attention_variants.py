"""Writes attention_variants.safetensors: the attention layer with variants that PyTorch's layer does not have, computed in plain loops.
Run by hand, with Python's standard library alone: python3 make_attention_variants.py"""
import json
import math
import pathlib
import random
import struct

draw = random.Random(20)
tensors, cases = {}, []


def normal(*shape, scale=1.0):
    if not shape:
        return draw.gauss(0, scale)
    return [normal(*shape[1:], scale=scale) for _ in range(shape[0])]


def put(name, value):
    shape, flat = [], value
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0]
    flat = value
    for _ in shape[1:]:
        flat = [x for part in flat for x in part]
    integers = all(isinstance(x, int) for x in flat)
    tensors[name] = ("I64" if integers else "F64", shape, struct.pack(f"<{len(flat)}{'q' if integers else 'd'}", *flat))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def project(x, weight, bias):
    return [dot(x, row) + (bias[i] if bias else 0) for i, row in enumerate(weight)]


def bucket(delta, buckets, max_distance, bidirectional):
    first, side = 0, buckets
    if bidirectional:
        side //= 2
        first = side if delta > 0 else 0
    distance = abs(delta) if bidirectional else max(-delta, 0)
    exact = side // 2
    if distance < exact:
        return first + distance
    steps, far = side - exact, 0
    # log(distance/exact) / log(max/exact) · steps ≥ far, without rounding
    while far + 1 < steps and max_distance ** (far + 1) * exact ** (steps - far - 1) <= distance ** steps:
        far += 1
    return first + exact + far


def slopes(heads):
    power = 1 << (heads.bit_length() - 1)
    own = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    return own + [2 ** (-8 * i / (2 * power)) for i in range(1, 2 * power, 2)][: heads - power]


def turned(x, position, pairing, width, base=10000.0):
    y = list(x)
    for i in range(width // 2):
        a, b = (2 * i, 2 * i + 1) if pairing == "neighbours" else (i, i + width // 2)
        angle = position * base ** (-2 * i / width)
        y[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        y[b] = x[a] * math.sin(angle) + x[b] * math.cos(angle)
    return y


def normed(x, kind, weight, bias):
    if kind == "rms":
        root = math.sqrt(dot(x, x) / len(x) + 1e-6)
        return [w * v / root for w, v in zip(weight, x)]
    mean = sum(x) / len(x)
    root = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
    return [w * (v - mean) / root + b for w, v, b in zip(weight, x, bias)]


def allowed(o, b, i, j, n_q, n_k):
    here = i + n_k - n_q
    delta = j - here
    return (not (o.get("causal") and delta > 0) and not (o.get("window") and abs(delta) >= o["window"])
            and not ("prefix" in o and delta > 0 and j >= o["prefix"][b])
            and not ("segments" in o and o["segments"][b][here] != o["segments"][b][j])
            and not ("key_lengths" in o and j >= o["key_lengths"][b]))


def attend(o, p, query, key, value, bias):
    """One example after another, one head after another: out [B, n_q, d_model], weights [B, h, n_q, n_k]."""
    h, kv, d_k, d_v = o["heads"], o["kv_heads"], o["d_k"], o["d_v"]
    n_q, n_k = len(query[0]), len(key[0])
    outs, patterns = [], []
    for b in range(len(query)):
        def heads_of(x, name, heads, d, norm):
            rows = [project(row, p[name], p[name + "_bias"]) for row in x[b]]
            parts = [[row[i * d:(i + 1) * d] for row in rows] for i in range(heads)]
            if norm and "qk_norm" in o:
                parts = [[normed(r, o["qk_norm"], p[norm], p.get(norm + "_bias")) for r in part] for part in parts]
            if norm and "rotary" in o:
                parts = [[turned(r, t, *o["rotary"]) for t, r in enumerate(part)] for part in parts]
            return parts
        q, k = heads_of(query, "q", h, d_k, "q_norm"), heads_of(key, "k", kv, d_k, "k_norm")
        v = heads_of(value, "v", kv, d_v, None)
        contexts, pattern = [[] for _ in range(n_q)], []
        for head in range(h):
            shared, weights = head * kv // h, []
            for i in range(n_q):
                scores = {}
                for j in range(n_k):
                    if not allowed(o, b, i, j, n_q, n_k):
                        continue
                    s = dot(q[head][i], k[shared][j]) * o.get("scale", 1 / math.sqrt(d_k))
                    if "softcap" in o:
                        s = o["softcap"] * math.tanh(s / o["softcap"])
                    delta = j - (i + n_k - n_q)
                    s += bias[b][head][i][j] if bias else 0
                    s -= slopes(h)[head] * abs(delta) if o.get("alibi") else 0
                    s += p["relative_bias"][bucket(delta, *o["relative_bias"])][head] if "relative_bias" in o else 0
                    scores[j] = s
                total = sum(map(math.exp, scores.values())) + (math.exp(p["sink"][head]) if scores and "sink" in p else 0)
                row = [math.exp(scores[j]) / total if j in scores else 0.0 for j in range(n_k)]
                contexts[i] += [sum(row[j] * v[shared][j][c] for j in range(n_k)) for c in range(d_v)]
                weights.append(row)
            pattern.append(weights)
        outs.append([project(z, p["out"], p["out_bias"]) for z in contexts])
        patterns.append(pattern)
    return outs, patterns


def case(name, batch=2, n_q=5, n_k=None, d_model=12, heads=4, bias=None, **o):
    n_k = n_k or n_q
    o = {"d_model": d_model, "heads": heads, "kv_heads": heads, "d_k": d_model // heads, "kdim": d_model, "vdim": d_model, **o}
    o.setdefault("d_v", o["d_k"])
    sizes = {"q": (heads * o["d_k"], d_model), "k": (o["kv_heads"] * o["d_k"], o["kdim"]), "v": (o["kv_heads"] * o["d_v"], o["vdim"])}
    p = {part: normal(*size, scale=1.5 / math.sqrt(size[1])) for part, size in sizes.items()}
    p |= {part + "_bias": normal(size[0], scale=0.3) for part, size in sizes.items()}
    p |= {"out": normal(d_model, heads * o["d_v"], scale=0.3), "out_bias": normal(d_model, scale=0.3)}
    if "qk_norm" in o:
        p |= {norm: normal(o["d_k"]) for norm in ("q_norm", "k_norm")}
        if o["qk_norm"] == "layer":
            p |= {norm + "_bias": normal(o["d_k"]) for norm in ("q_norm", "k_norm")}
    if o.get("sink"):
        p["sink"] = normal(heads)
    if "relative_bias" in o:
        p["relative_bias"] = normal(o["relative_bias"][0], heads)
    query, self_attention = normal(batch, n_q, d_model), (n_k, o["kdim"], o["vdim"]) == (n_q, d_model, d_model)
    key = query if self_attention else normal(batch, n_k, o["kdim"])
    value = query if self_attention else normal(batch, n_k, o["vdim"])
    added = normal(batch, heads, n_q, n_k) if bias else None
    out, weights = attend(o, p, query, key, value, added)
    put(name + ".query", query)
    if not self_attention:
        put(name + ".key", key)
        put(name + ".value", value)
    if added:
        put(name + ".bias", added)
    if (o["kdim"], o["vdim"]) == (d_model, d_model):
        put(name + ".param.qkv.weight", p["q"] + p["k"] + p["v"])
    else:
        for part in "qkv":
            put(f"{name}.param.{part}.weight", p[part])
    put(name + ".param.qkv.bias", p["q_bias"] + p["k_bias"] + p["v_bias"])
    put(name + ".param.out.weight", p["out"])
    put(name + ".param.out.bias", p["out_bias"])
    for norm in ("q_norm", "k_norm"):
        if norm in p:
            put(f"{name}.param.{norm}.weight", p[norm])
        if norm + "_bias" in p:
            put(f"{name}.param.{norm}.bias", p[norm + "_bias"])
    for own in ("sink", "relative_bias"):
        if own in p:
            put(f"{name}.param.{own}", p[own])
    if "segments" in o:
        put(name + ".segments", o["segments"])
    put(name + ".out", out)
    put(name + ".weights", weights)
    cases.append({"name": name, **o})


case("qk_norm_rms", qk_norm="rms", kv_heads=2)
case("qk_norm_layer", qk_norm="layer", scale=0.8)
case("sink_window_gqa", n_q=7, kv_heads=2, sink=True, window=3, causal=True)
case("sink_without_keys", n_q=5, n_k=3, sink=True, causal=True)
case("t5_bidirectional", n_q=29, batch=1, relative_bias=[8, 20, True])
case("t5_causal", n_q=11, n_k=23, batch=1, relative_bias=[6, 19, False], causal=True)
case("alibi_6_heads", n_q=7, heads=6, alibi=True, causal=True)
case("alibi_3_heads_cross", n_q=3, n_k=7, heads=3, alibi=True)
case("prefix", n_q=6, batch=3, prefix=[3, 0, 6])
case("prefix_of_cross", n_q=2, n_k=5, prefix=[4, 1])
case("segments", n_q=7, segments=[[0, 0, 0, 1, 1, 2, 2], [3, 4, 4, 4, 4, 4, 9]])
case("segments_causal", n_q=7, segments=[[0, 0, 0, 1, 1, 2, 2], [3, 4, 4, 4, 4, 4, 9]], causal=True)
case("rotary_partial_neighbours", d_k=7, rotary=["neighbours", 4, 100.0], causal=True)
case("rotary_partial_halves", d_k=7, rotary=["halves", 4, 10000.0], kv_heads=1)
case("softcap_bias", softcap=1.5, bias=True, causal=True)
case("sizes_of_its_own", n_q=3, n_k=5, d_model=10, heads=4, kv_heads=2, d_k=3, d_v=5, kdim=7, vdim=11, softcap=2.0, sink=True)
case("everything", n_q=7, d_model=10, heads=6, kv_heads=3, d_k=5, d_v=3, qk_norm="rms", rotary=["halves", 2, 50.0], softcap=3.0, bias=True,
     alibi=True, relative_bias=[5, 9, False], sink=True, window=4, causal=True, key_lengths=[7, 4])

header, offset = {"__metadata__": {"cases": json.dumps(cases)}}, 0
for name, (dtype, shape, data) in tensors.items():
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
    offset += len(data)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
path = pathlib.Path(__file__).parent / "attention_variants.safetensors"
path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
print(f"{path.name}: {len(cases)} cases, {path.stat().st_size} bytes")
