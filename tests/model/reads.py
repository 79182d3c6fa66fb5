"""How the machine reads, observes, forks and releases, and what it then compares."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.io._json import axes_in_memory
from tests.model import naive
from tests.model.building import Building
from tests.model.computations import same_bits
from tests.model.worlds import (
    COMPUTED,
    KINDS,
    MOST_WORLDS,
    OPS,
    Code,
    Trouble,
    World,
)


class Reads(Building):
    """Reads and observers, forks and lifetimes; each on a graph and on its model."""

    def act_read(self, world: World, code: Code) -> None:
        targets = dict.fromkeys(code.among(list(world.vars)) for _ in range(1 + code.pick(3)))
        self.read(world, list(targets), retry=code.pick(8) == 0)

    def act_value(self, world: World, code: Code) -> None:
        """Read as users do, by ``.value``."""
        model = world.model
        uid = code.among(world.held(lambda node: model.is_stale(node.uid)) or [0])
        if uid:
            self.read(world, [uid], plainly=True)

    def act_burst(self, world: World, code: Code) -> None:
        """The loop that plans are cached for: nothing else looks at the graph in between."""
        leaf = code.among(self.leaves(world) or [0])
        targets = list(dict.fromkeys(code.among(list(world.vars)) for _ in range(1 + code.pick(2))))
        if leaf:
            for _ in range(4):
                self.set_leaf(world, leaf, self.new_value(world, leaf, code), code)
                self.read(world, targets)

    def read(
        self, world: World, uids: list[int], *, retry: bool = False, plainly: bool = False
    ) -> None:
        model = world.model
        outcome = world.expect(uids, retry=retry)
        self.called.clear()
        self.now = world
        raised: Exception | None = None
        try:
            with self.hearing():
                if plainly:
                    world.vars[uids[0]].value
                else:
                    world.graph.forward(*[world.vars[uid] for uid in uids], retry=retry)
        except ExceptionGroup:
            raise
        except Exception as error:
            raised = error.with_traceback(None)
        self.check_run(world, outcome, uids, raised)
        self.notify(world)
        if not model.news():  # else observers made sets, and this would be another run
            for uid in uids:
                if uid not in outcome.bad and not model.is_stale(uid):
                    self.check_value(world, uid)

    def uids(self, world: World, variables: Iterable[rg.Var]) -> list[int]:
        found = []
        for var in variables:
            uid = world.uid_of.get(var.name)
            assert uid is not None or world.gradients, var
            if uid is not None:
                found.append(uid)
        return found

    def check_run(
        self, world: World, outcome: naive.Outcome, uids: list[int], raised: Exception | None
    ) -> None:
        run = world.graph.last_run
        ran, cut_off = self.uids(world, run.ran), self.uids(world, run.cut_off)
        failed, rebuilt = self.uids(world, run.failed), self.uids(world, run.rebuilt)
        assert len(set(ran)) == len(ran), f"ran twice: {ran}"
        assert set(ran) == set(outcome.ran), f"ran {ran}, not {outcome.ran}; {raised!r}"
        assert set(cut_off) == set(outcome.cut_off), f"cut off {cut_off}, not {outcome.cut_off}"
        # Errors of before that do not keep a target from its value need not be listed.
        listed = set(outcome.called) - set(outcome.ran)
        listed |= {outcome.bad[uid].uid for uid in uids if uid in outcome.bad}
        assert len(set(failed)) == len(failed), f"failed twice: {failed}"
        assert listed <= set(failed) <= set(outcome.failed), (
            f"failed {failed}, not {outcome.failed}"
        )
        skipped = self.uids(world, run.skipped)
        if (
            not world.graph._scheduler.distrust
        ):  # else what ran is doubted by the next node that reads
            assert not set(skipped) & set(ran), f"skipped {skipped}, ran {ran}"
        world.released_any()
        assert set(rebuilt) <= world.model.released, f"rebuilt {rebuilt}"
        self.note_rebuilt(world, rebuilt)
        if any(watch.kind == "error" for watch in world.model.watches.values()):
            world.failed.update(failed)
        place = {uid: i for i, uid in enumerate(ran)}
        for uid in ran:
            for parent in world.model.parents(uid):
                assert place.get(parent, -1) < place[uid], f"{uid} ran before {parent}"
        functions = [
            uid
            for uid in outcome.called
            if (op := world.model.nodes[uid].op) not in OPS and op != "switch"
        ]
        assert not Counter(functions) - Counter(self.called), (functions, self.called)
        extra = Counter(self.called) - Counter(functions)
        once = not world.limited
        assert all(uid in rebuilt and (n == 1 or not once) for uid, n in extra.items()), (
            functions,
            self.called,
        )
        bad = [outcome.bad[uid] for uid in uids if uid in outcome.bad]
        for one in failed:
            self.did(f"raised: {world.model.nodes[one].error.kind.__name__}")
        for what, nodes in (("ran", ran), ("cut off", cut_off), ("rebuilt", rebuilt)):
            self.done[what] += len(nodes)
        assert (raised is not None) == bool(bad), f"raised {raised!r}, not {bad}"
        if raised is not None:
            kinds = tuple(KINDS[error.kind] for error in outcome.bad.values())
            assert isinstance(raised, kinds), f"raised {raised!r}, not {bad}"

    @staticmethod
    def note_rebuilt(world: World, uids: Iterable[int]) -> None:
        for uid in uids:
            world.model.released.discard(uid)
            world.handed.pop(uid, None)  # the same bits, in another object

    def check_value(self, world: World, uid: int) -> None:
        wanted, version = world.model.nodes[uid].value, world.model.nodes[uid].version
        self.now = world
        value = world.vars[uid].value
        assert same_bits(value, wanted), f"{uid} is {value!r}, not {wanted!r}"
        world.released_any()
        former = world.handed.get(uid)
        if former is not None and former[0] == version and uid not in world.model.released:
            assert value is former[1] or not isinstance(value, np.ndarray)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
            if self.turn % 3:
                self.kept.append((value, value.tobytes()))
                world.handed[uid] = (version, value)
            else:
                world.handed.pop(uid, None)

    # --- observers -----------------------------------------------------------------------------------------

    def notify(self, world: World) -> None:
        """At the end of a run: observers are told, then what they set is set."""
        if world.model.undo:
            return
        calls, echoes = world.model.tell_outcomes(world.failed)
        world.failed.clear()
        self.expected.append(calls + world.model.tell_stale())
        if echoes:
            world.model.set(echoes)
            self.tell_stale(world)

    def tell_stale(self, world: World) -> None:
        if not world.model.undo:
            self.expected.append(world.model.tell_stale())

    def act_observe(self, world: World, code: Code) -> None:
        if self.doomed:  # nothing says what one is told that is attached before a rollback
            return
        uid = code.among(list(world.vars))
        kind = code.among(["changed", "changed", "stale", "error", "removed", "removed"])
        if kind == "error":
            nodes = world.model.nodes
            fail = {one for one, node in nodes.items() if node.op == "fussy"}
            may = [one for one in world.vars if fail & world.model.ancestors([one])]
            uid = code.among(may or [uid])
            if naive.Standing(world.model).obstacle(uid) is not None:
                return  # whether it hears of an error of before depends on what runs come by
        number = self.uid()
        echo: tuple[int, Any] | None = None
        if kind == "changed" and code.pick(3) == 0:
            taken = {watch.echo[0] for watch in world.model.watches.values() if watch.echo}
            choices = world.held(lambda n: type(n.value) is int and n.uid not in taken)
            if choices:
                echo = (code.among(choices), code.pick(4))
        pending = [(world.vars[echo[0]], echo[1])] if echo else []
        raises = code.pick(4) == 0

        def told(*arguments: Any) -> None:
            self.did(f"told: {kind}")
            self.heard.append((number, kind, arguments))
            while pending:
                leaf, value = pending.pop()
                leaf.set(value)
            if raises:
                self.trouble.append(Trouble(number))
                self.did("raised in an observer")
                raise self.trouble[-1]

        def error(raised: Exception) -> None:
            told(next(kind for kind, one in KINDS.items() if isinstance(raised, one)))

        slot = world.vars[uid]._slot
        callback: Callable[..., object] = {
            "changed": told,
            # Not by its name, which may be another one until a transaction is taken back.
            "stale": lambda var: told(uid if var._slot == slot else var.name),
            "error": error,
            "removed": lambda var: told(),
        }[kind]
        world.model.attach(number, uid, kind, echo)
        world.observers[number] = world.vars[uid].observe(callback, kind=kind)
        self.tell_stale(world)

    def act_cancel(self, world: World, code: Code) -> None:
        if world.observers:
            number = code.among(list(world.observers))
            observer = world.observers.pop(number)
            observer.cancel()
            assert not observer.active
            del world.model.watches[number]

    def act_stabilize(self, world: World, code: Code) -> None:
        if world.model.undo:
            return
        model = world.model
        passes = 0
        while True:
            passes += 1
            watches = [watch for watch in model.watches.values() if watch.kind != "removed"]
            targets = dict.fromkeys(watch.uid for watch in watches)
            outcome = world.expect(targets)
            # What a later pass has mended is no error any more, nor what somebody is told of.
            heard = {watch.uid for watch in watches if watch.kind == "error"}
            failed = any(uid in outcome.bad and uid not in heard for uid in targets)
            if heard:
                world.failed.update(outcome.failed)
            version = sum(node.version for node in model.nodes.values())
            echoing = [w for w in model.watches.values() if w.echo and model._has_news(w)]
            self.notify(world)
            moved = version != sum(node.version for node in model.nodes.values())
            if not moved:
                break
            assert echoing
        self.called.clear()
        self.now = world
        raised: Exception | None = None
        try:
            with self.hearing():
                assert world.graph.stabilize() <= passes + 1
        except ExceptionGroup:
            raise
        except Exception as error:
            raised = error.with_traceback(None)
        assert (raised is not None) == failed, f"stabilize raised {raised!r}"
        self.note_rebuilt(world, self.uids(world, world.graph.last_run.rebuilt))

    # --- forks, releases, lifetime -----------------------------------------------------------------------

    def act_fork(self, world: World, code: Code) -> None:
        if len(self.worlds) >= MOST_WORLDS:
            self.worlds.pop(1 + code.pick(MOST_WORLDS - 1))
            return
        if world.model.undo or world not in self.worlds:
            return
        graph = world.graph.fork()
        twin = World(graph, world.model.fork())
        twin.vars = {uid: graph[var] for uid, var in world.vars.items()}
        twin.uid_of, twin.sources = dict(world.uid_of), dict(world.sources)
        twin.gradients = world.gradients
        self.worlds.append(twin)

    def act_whatif(self, world: World, code: Code) -> None:
        leaf = code.among(self.leaves(world) or [0])
        if not leaf or world.model.undo:
            return
        value = self.new_value(world, leaf, code)
        model = world.model.fork()
        model.set({leaf: value})
        uid = code.among(list(world.vars))
        outcome = model.read([uid])
        with world.graph.whatif({world.vars[leaf]: value}) as graph:
            twin = World(graph, model)
            twin.uid_of, twin.gradients = world.uid_of, world.gradients
            twin.sources = world.sources
            twin.vars = {uid: graph[world.vars[uid]]}
            self.called.clear()
            self.now = twin
            raised: Exception | None = None
            try:
                graph.forward(graph[world.vars[uid]])
            except Exception as error:
                raised = error.with_traceback(None)
            self.check_run(twin, outcome, [uid], raised)
            if not raised:
                self.check_value(twin, uid)

    def act_release(self, world: World, code: Code) -> None:
        """A backward that keeps no values; what it needs is rebuilt later."""
        model = world.model
        roots = world.held(lambda node: node.op in OPS and node.shape == ())
        uid = code.among(roots or [0])
        if not uid or model.undo:
            return
        self.read(world, [uid])
        if model.is_stale(uid):
            return
        world.gradients = True
        inner = {u for u in model.ancestors([uid]) if u != uid and model.nodes[u].op != "leaf"}
        model.released |= {u for u in inner if not model.nodes[u].pinned}
        run = None
        try:
            with (
                self.hearing()
            ):  # which keeps what observers raise: then there is no run to look at
                run = world.vars[uid].backward(retain_graph=False)
        except rg.GradientError:
            return
        assert run is None or not self.uids(world, run.ran)
        self.did("released values")

    def act_evict(self, world: World, code: Code) -> None:
        """A memory budget: values go at any moment from now on, and nothing else differs."""
        with self.hearing():
            world.graph.max_bytes = code.among([None, 0, 40, 200])
        world.released_any()

    def act_reload(self, world: World, code: Code) -> None:
        """Go on with what a file brings back; who is not named has to be taken from there."""
        model = world.model
        if model.undo or code.pick(3):  # observers stay behind, and shall have time to be told
            return
        self.called.clear()
        data = world.graph._host.data
        formless = [
            uid
            for var in world.graph.nodes
            if (uid := world.uid_of.get(var.name)) in model.nodes
            and model.nodes[uid].op in COMPUTED
            and not model.nodes[uid].pinned
            and isinstance(data[var._slot], np.ndarray)
            and axes_in_memory(data[var._slot]) is None
        ]
        with TemporaryDirectory() as folder:
            world.graph.save(f"{folder}/graph")
            loaded = rg.load(f"{folder}/graph")
        loaded._scheduler.distrust = world.graph._scheduler.distrust
        assert not self.called, "saving or loading computes nothing"
        named = {uid for name, uid in world.uid_of.items() if uid in model.nodes and " " in name}
        model.reload(named, formless)
        found = {world.uid_of.get(var.name): var for var in loaded.nodes}
        world.graph, world.gradients = loaded, False
        world.vars = {uid: found[uid] for uid in world.vars}
        world.sources = {
            uid: tuple([found[target] for target in model.nodes[uid].targets])
            for uid in world.sources
            if uid in model.nodes
        }
        world.observers.clear()
        world.handed.clear()
        world.failed.clear()
        model.drop_unreachable()
        self.did("saved and loaded")

    def act_drop(self, world: World, code: Code) -> None:
        if len(world.vars) <= 4 or world.model.undo:
            return
        uid = code.among(list(world.vars))
        del world.vars[uid]
        world.handed.pop(uid, None)
        world.model.nodes[uid].held = False

    def act_regain(self, world: World, code: Code) -> None:
        """Come by a handle that was dropped, from a child."""
        uid = code.among(world.held(lambda node: node.operands) or [0])
        if not uid:
            return
        node = world.model.nodes[uid]
        position = code.pick(len(node.operands))
        parent, var = node.operands[position], world.vars[uid].parents[position]
        if parent in world.vars:
            assert world.vars[parent] is var
        else:
            assert world.uid_of[var.name] == parent
            world.vars[parent] = var
            world.model.nodes[parent].held = True

    def act_forget(self, world: World, code: Code) -> None:
        world.graph.forget_marks()

    def act_nodes(self, world: World, code: Code) -> None:
        """Nodes that nobody can reach are gone, the others are not."""
        gone = {name for name, uid in world.uid_of.items() if uid not in world.model.nodes}
        names = {var.name for var in world.graph.nodes}
        if gone & names:
            gc.collect()  # errors that were raised may have made cycles with their frames
            names = {var.name for var in world.graph.nodes}
        assert world.uid_of.keys() - gone <= names, f"{world.uid_of.keys() - gone - names} are gone"
        # Functions that a fork has, too, keep what they read here.
        if len(self.worlds) == 1 and not world.gradients and not world.model.undo:
            assert not gone & names, f"{gone & names} are still there"
            for name in gone:
                del world.uid_of[name]
