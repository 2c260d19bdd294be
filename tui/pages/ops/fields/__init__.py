"""The quantities of the op pages."""

COLUMNS: tuple[str, ...] = (
    *("flops_utilization", "hbm_bandwidth_utilization", "self_time_ps", "occurrences", "bound_by"),
    *("average_self_time_ps", "category", "bandwidth_gigabytes_per_second.hbm", "gflops_per_second"),
    *("operational_intensity", "roofline_efficiency", "cumulative_percent", "total_time_ps", "average_time_ps"),
    *("model_gflops_per_second", "gigabytes_per_second", "bandwidth_gigabytes_per_second.cmem_read"),
    *("bandwidth_gigabytes_per_second.cmem_write", "bandwidth_gigabytes_per_second.sram_read"),
    *("bandwidth_gigabytes_per_second.sram_write", "dma_stall_percent", "remat", "program", "framework_op"),
    *("core_type", "parent_op", "outside_compilation", "autotuned", "energy_joules"),
)
"""Fields of HLO ops that the screen shows beside the first ones, in their order; a user chooses among them."""

SIDE_FIRST: tuple[str, ...] = ("core_type", *(key for key in COLUMNS if key != "core_type"))
"""The same where SparseCores ran some of the ops: which kind of core ran each comes first."""
