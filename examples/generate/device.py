"""Devices, and how long an operator takes on one.

The model is a roofline plus a launch: time = launch + max(FLOPs / (peak x efficiency), bytes / bandwidth). The
efficiency depends on the kind of arithmetic only, so each device has few constants. Peaks are the vendors'. The
efficiencies of convolutions, and of matrix products on the V100, were fitted to throughputs that others published
(README.md cites them and shows the fit); bandwidths, launch costs and the other efficiencies are assumed. An efficiency
above 1 is no mistake: FLOPs are counted as the textbook convolution, and a Winograd kernel does the same 3x3
convolution with up to 2.25 times fewer multiplications (Lavin and Gray, arXiv:1509.09308).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    name: str
    peak_tflops: float  # vendor's figure for `dtype`, dense
    bandwidth_gbyte_per_s: float  # what streaming kernels reach, not the vendor's peak
    launch_us: float  # per operator: kernel launch and framework dispatch that is not hidden
    efficiency: dict  # kind of arithmetic -> share of the peak
    dtype: str = "f32"

    def time_us(self, kind, flops, nbytes):
        arithmetic = flops / (self.peak_tflops * 1e6 * self.efficiency[kind]) if flops else 0.0
        traffic = nbytes / (self.bandwidth_gbyte_per_s * 1e3)
        return self.launch_us + max(arithmetic, traffic)


# kinds: "winograd" = 3x3 convolution with stride 1; "conv" = every other convolution; "gemm" = matrix products;
# "recurrent" = the products inside a time step of an LSTM, whose rows are only the batch.
DEVICES = {
    # Tesla V100-SXM2: 15.7 TFLOP/s, 900 GB/s (NVIDIA V100 data sheet).
    "v100": Device("v100", 15.7, 780.0, 6.0, {"winograd": 1.42, "conv": 0.74, "gemm": 0.71, "recurrent": 0.35}),
    # One GK210, half a Tesla K80: 8.74 / 2 TFLOP/s with boost, 480 / 2 GB/s (NVIDIA K80 board specification).
    "k80": Device("k80", 4.37, 150.0, 12.0, {"winograd": 0.82, "conv": 0.27, "gemm": 0.60, "recurrent": 0.25}),
    # The same with tensor cores: 125 TFLOP/s. The efficiency is such that llama-1b-v100 computes at 39 TFLOP/s, as
    # Megatron-LM's 1.2 billion parameters did on one (arXiv:1909.08053).
    "v100-f16": Device("v100-f16", 125.0, 780.0, 6.0, {"gemm": 0.32}, "f16"),
    # H100 SXM: 989.4 TFLOP/s (NVIDIA H100 data sheet). The one that torchtitan measured has 2.4 TB/s, and 500 W of 700.
    # The efficiency was fitted to its speed, in which selective recomputation, the optimizer and the waits are.
    "h100-bf16": Device("h100-bf16", 989.4, 2100.0, 4.0, {"gemm": 0.36}, "bf16"),
    # Not a product: a round-number slow device, so that the small models compute for 60-120 ms, as long as a 1 Gbit/s
    # link needs for their gradients. 40 GFLOP/s and 10 GB/s is about a laptop core.
    "slow": Device("slow", 0.040, 10.0, 10.0, {"winograd": 1.0, "conv": 1.0, "gemm": 1.0, "recurrent": 1.0}),
}
