"""Computation graphs: cost models, generators, importers, orders, schedulers, learned priorities."""

from lope.core.registry import Room

ORDERS = Room(
    "order",
    {
        "as_given": "lope.graphs.orders.as_given:AsGivenOrder",
        "bfs": "lope.graphs.orders.breadth_first:BreadthFirstOrder",
        "dfs": "lope.graphs.orders.depth_first:DepthFirstOrder",
        "xla_list": "lope.graphs.orders.xla_list:XlaListOrder",
        "lpmf": "lope.graphs.orders.lpmf:LpmfOrder",
        "greedy": "lope.graphs.orders.greedy_memory:GreedyMemoryOrder",
        "beam": "lope.graphs.orders.beam:BeamOrder",
        "exact": "lope.graphs.orders.exact:ExactOrder",
        "cp_sat": "lope.graphs.orders.cp_sat:CpSatOrder",
        "best": "lope.graphs.orders.best_of:BestOfOrder",
        "topoformer": "lope.graphs.learned.topoformer_order:TopoformerOrder",
    },
)

IMPORTERS = Room(
    "importer",
    {
        "json": "lope.graphs.graph_json:JsonImporter",
        "onnx": "lope.graphs.importers.onnx_file:OnnxImporter",
        "torch_export": "lope.graphs.importers.torch_export:TorchExportImporter",
    },
)

GENERATORS = Room(
    "generator",
    {
        "layered": "lope.graphs.generators.layered:LayeredGraphs",
        "erdos_renyi": "lope.graphs.generators.erdos_renyi:ErdosRenyiGraphs",
        "stochastic_block": "lope.graphs.generators.stochastic_block:StochasticBlockGraphs",
        "jssp": "lope.graphs.generators.jssp:JobShops",
        "tpch": "lope.graphs.generators.tpch:TpchJobs",
    },
)

SCHEDULERS = Room(
    "scheduler",
    {
        "as_given": "lope.graphs.schedules.as_given:AsGivenSchedule",
        "cp": "lope.graphs.schedules.critical_path:CriticalPathSchedule",
        "spt": "lope.graphs.schedules.shortest:ShortestSchedule",
        "mopnr": "lope.graphs.schedules.most_operations:MostOperationsSchedule",
        "heft": "lope.graphs.schedules.heft:HeftSchedule",
        "best": "lope.graphs.schedules.best_of:BestOfSchedule",
        "gumbel": "lope.graphs.schedules.gumbel:GumbelSchedule",
        "cp_sat": "lope.graphs.schedules.cp_sat:CpSatSchedule",
        "learned": "lope.graphs.learned.one_shot:OneShotSchedule",
    },
)
