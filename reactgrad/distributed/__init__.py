"""Work on several ranks: collectives as nodes, and models that train together.

- ``_group``: ``init``, ``run`` and ``Group``. ``_work``: what moves arrays. ``_local``: threads of one process.
  ``_mpi``: processes. ``_request``: what a rank asks for. ``_reductions``: what each rank gets.
- ``_start``, ``_pair``: a collective as two nodes. ``_rounds``: which of them run.
  ``_collectives``: all of them by name.
- ``_data_parallel``: a module on the batches of all ranks. ``_buckets``: its gradients. ``_in_step``: values that
  all ranks share.
- ``_sharded``: an optimiser whose moments are divided. ``_hook``: gradients of single params.
- ``_shipping``: a graph kept in step with one in another process.
- ``_farm``: scenarios on many workers. ``_function_farm``: a function there. ``_crew``: how they share work.
  ``_places``: where their graphs are. ``_holder``: what is done there.
- ``_partition``: a graph whose parts are on different workers.
- ``_accumulator``: sums of gradients by a thread. ``_population``: many members of one model in one graph.
- ``_evolution``: the fitness of a population.
- ``_check``: gradients across ranks, compared with finite differences.

A read of a node that depends on a collective is made by all ranks together. Where nothing has changed on any
rank, no data moves.
"""

from reactgrad.distributed._accumulator import Accumulator as Accumulator
from reactgrad.distributed._check import check_grads as check_grads
from reactgrad.distributed._collectives import all_gather as all_gather
from reactgrad.distributed._collectives import all_reduce as all_reduce
from reactgrad.distributed._collectives import all_to_all as all_to_all
from reactgrad.distributed._collectives import barrier as barrier
from reactgrad.distributed._collectives import broadcast as broadcast
from reactgrad.distributed._collectives import broadcast_coalesced as broadcast_coalesced
from reactgrad.distributed._collectives import gather as gather
from reactgrad.distributed._collectives import recv as recv
from reactgrad.distributed._collectives import reduce_add as reduce_add
from reactgrad.distributed._collectives import reduce_add_coalesced as reduce_add_coalesced
from reactgrad.distributed._collectives import reduce_scatter as reduce_scatter
from reactgrad.distributed._collectives import scatter as scatter
from reactgrad.distributed._collectives import send as send
from reactgrad.distributed._data_parallel import DataParallel as DataParallel
from reactgrad.distributed._errors import DistributedError as DistributedError
from reactgrad.distributed._errors import RankFailedError as RankFailedError
from reactgrad.distributed._errors import RankTimeoutError as RankTimeoutError
from reactgrad.distributed._evolution import spread_fitness as spread_fitness
from reactgrad.distributed._farm import Farm as Farm
from reactgrad.distributed._function_farm import FunctionFarm as FunctionFarm
from reactgrad.distributed._group import Group as Group
from reactgrad.distributed._group import LocalRanks as LocalRanks
from reactgrad.distributed._group import group as group
from reactgrad.distributed._group import init as init
from reactgrad.distributed._group import run as run
from reactgrad.distributed._hook import all_reduce_hook as all_reduce_hook
from reactgrad.distributed._partition import Partition as Partition
from reactgrad.distributed._partition import partition as partition
from reactgrad.distributed._places import LocalHosts as LocalHosts
from reactgrad.distributed._population import Member as Member
from reactgrad.distributed._population import Population as Population
from reactgrad.distributed._sharded import ShardedOptimizer as ShardedOptimizer
from reactgrad.distributed._shipping import Receiver as Receiver
from reactgrad.distributed._shipping import Shipper as Shipper
from reactgrad.distributed._work import Traffic as Traffic
