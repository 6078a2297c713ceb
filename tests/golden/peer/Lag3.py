"""A first-order lag with variables of every type that works in pythonfmu3 (not enumerations)."""
import numpy as np
from pythonfmu3 import (Boolean, DefaultExperiment, Dimension, Float64, Fmi3Causality, Fmi3Initial,
                        Fmi3Slave, Fmi3StepResult, Fmi3Variability, Int32, Int64, String, UInt64)

FIXED = dict(causality=Fmi3Causality.parameter, variability=Fmi3Variability.fixed)
DISCRETE = dict(causality=Fmi3Causality.output, variability=Fmi3Variability.discrete)
CONTINUOUS = dict(variability=Fmi3Variability.continuous)


class Lag3(Fmi3Slave):
    default_experiment = DefaultExperiment(start_time=0, stop_time=1, step_size=0.01)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time = 0.0
        self.u, self.on, self.T, self.limit, self.label = 0.0, True, 0.1, 10, "lag"
        self.big, self.huge = 2**40, 2**63 + 5
        self.y, self.count, self.above, self.text = 0.25, 0, False, ""
        self.big_out = 0
        self.weights, self.powers = np.array([1.0, 2.0, 3.0]), np.zeros(3)
        self.register_variable(Float64("time", causality=Fmi3Causality.independent, **CONTINUOUS))
        self.register_variable(Float64("u", causality=Fmi3Causality.input, **CONTINUOUS))
        self.register_variable(Boolean("on", causality=Fmi3Causality.input,
                                       variability=Fmi3Variability.discrete))
        self.register_variable(Float64("T", **FIXED))
        self.register_variable(Int32("limit", **FIXED))
        self.register_variable(Int64("big", **FIXED))
        self.register_variable(UInt64("huge", **FIXED))
        self.register_variable(String("label", **FIXED))
        self.register_variable(Float64("weights", dimensions=[Dimension(start="3")],
                                       getter=lambda: self.weights.tolist(),
                                       setter=self.set_weights, **FIXED))
        self.register_variable(Float64("y", causality=Fmi3Causality.output,
                                       initial=Fmi3Initial.exact, **CONTINUOUS))
        self.register_variable(Float64("powers", dimensions=[Dimension(start="3")],
                                       causality=Fmi3Causality.output, **CONTINUOUS))
        self.register_variable(Int32("count", **DISCRETE))
        self.register_variable(Int64("big_out", **DISCRETE))
        self.register_variable(Boolean("above", **DISCRETE))
        self.register_variable(String("text", **DISCRETE))

    def set_weights(self, values):
        self.weights = np.array(values)

    def exit_initialization_mode(self):
        self.text = f"{self.label} 0"

    def do_step(self, current_time, step_size):
        self.time = current_time + step_size
        if self.on:
            self.y += step_size * (self.u - self.y) / self.T
        self.count = min(self.count + 1, self.limit)
        self.big_out = self.big + self.count
        self.above = self.y > 0.5
        self.text = f"{self.label} {self.count}"
        self.powers = self.weights * self.y
        return Fmi3StepResult()
