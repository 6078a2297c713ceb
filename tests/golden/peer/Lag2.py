"""A first-order lag with variables of every type that pythonfmu has."""
from pythonfmu import (Boolean, DefaultExperiment, Fmi2Causality, Fmi2Initial, Fmi2Slave,
                       Fmi2Variability, Integer, Real, String)

FIXED = dict(causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed)
DISCRETE = dict(causality=Fmi2Causality.output, variability=Fmi2Variability.discrete)


class Lag2(Fmi2Slave):
    default_experiment = DefaultExperiment(start_time=0, stop_time=1, step_size=0.01)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.on, self.T, self.limit, self.label = 0.0, True, 0.1, 10, "lag"
        self.y, self.count, self.above, self.text = 0.25, 0, False, ""
        self.register_variable(Real("u", causality=Fmi2Causality.input))
        self.register_variable(Boolean("on", causality=Fmi2Causality.input))
        self.register_variable(Real("T", **FIXED))
        self.register_variable(Integer("limit", **FIXED))
        self.register_variable(String("label", **FIXED))
        self.register_variable(Real("y", causality=Fmi2Causality.output, initial=Fmi2Initial.exact))
        self.register_variable(Integer("count", **DISCRETE))
        self.register_variable(Boolean("above", **DISCRETE))
        self.register_variable(String("text", **DISCRETE))

    def exit_initialization_mode(self):
        self.text = f"{self.label} 0"

    def do_step(self, current_time, step_size):
        if self.on:
            self.y += step_size * (self.u - self.y) / self.T
        self.count = min(self.count + 1, self.limit)
        self.above = self.y > 0.5
        self.text = f"{self.label} {self.count}"
        return True
