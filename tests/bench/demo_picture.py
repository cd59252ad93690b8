#!/usr/bin/env python3
"""demo_picture.py DEMO [POLICY] FILE.png: the README's picture from what make demo (and make demo-policy) measured: Pareto front, stages of its members, and what
each kind of policy gets. Needs pandas and matplotlib: PYTHONPATH=python python3 tests/bench/demo_picture.py build/demo samples/page/demo.png"""
import sys

import vlmprof
from vlmprof import plots

demo, policy, path = sys.argv[1], sys.argv[-2], sys.argv[-1]
plt, (configurations, samples) = plots._pyplot(), vlmprof.load(demo)
with plt.rc_context({**plots.STYLE, "font.size": 7.5}):
    figure = plt.figure(figsize=(8, 2.9))  # 800 px wide, twice as dense
    parts = figure.subfigures(1, 3, width_ratios=(1.25, 1, 1))
    plots.stages(vlmprof.front(configurations), samples, parts[1])
    plots.policy(vlmprof.run(["policy", policy, "--by", "kind"]), parts[2])
    plots.front(configurations, figure=parts[0])
    for part, title in zip(parts, ("Pareto front", "Where the time goes", "What a policy gains")):
        part.axes[0].set_title("")
        part.axes[0].set_title(title, loc="left", fontweight="bold")
    figure.savefig(path, dpi=200)
