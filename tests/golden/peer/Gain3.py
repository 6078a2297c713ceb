"""y = a u + b at once, also while initialising."""
from pythonfmu3 import Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability


class Gain3(Fmi3Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.a, self.b = 0.0, 2.0, 1.0
        fixed = dict(causality=Fmi3Causality.parameter, variability=Fmi3Variability.fixed)
        self.register_variable(Float64("u", causality=Fmi3Causality.input))
        self.register_variable(Float64("a", **fixed))
        self.register_variable(Float64("b", **fixed))
        self.register_variable(Float64("y", causality=Fmi3Causality.output,
                                  getter=lambda: self.a * self.u + self.b))

    def do_step(self, current_time, step_size):
        return True
