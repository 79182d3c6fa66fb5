import os
from hypothesis import settings
from tests.model import machine as m
OFF = os.environ.get("OFF", "observe,cancel,stabilize,release,edit,pin,unpin,transaction,fork,whatif").split(",")
def nothing(self, *a, **k): pass
if os.environ.get("BIAS"):
    def build(self, world, code):
        if len(world.model.nodes) >= m.MOST_NODES or world.model.undo: return
        kind = code.pick(10)
        if kind < 4: self.new_op(world, code)
        elif kind < 5: self.new_function(world, code)
        else: self.new_reader(world, code)
    m.Machine.build = build
    for name in OFF + ["rename", "nodes"]:
        setattr(m.Machine, "act_"+name, m.Machine.act_edit if name != "transaction" else nothing)
else:
  for name in OFF:
    old = getattr(m.Machine, "act_"+name)
    setattr(m.Machine, "act_"+name, nothing)
    m.INSIDE[:] = [nothing if f is old else f for f in m.INSIDE]
TestMachine = m.Machine.TestCase
TestMachine.settings = settings(m.TestMachine.settings, report_multiple_bugs=False)
import atexit
from tests.model import naive
counts = {"loop":0,"err":0}
_run = naive.Model._run
def run(self, node):
    _run(self, node)
    if node.error is not None:
        counts["err"] += 1
        counts["loop"] += node.error.kind is naive.Loop
naive.Model._run = run
atexit.register(lambda: open("/tmp/counts","w").write(str(counts)))
