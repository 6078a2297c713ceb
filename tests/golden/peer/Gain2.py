"""y = a u + b at once, also while initialising."""
from pythonfmu import Real, Fmi2Causality, Fmi2Slave, Fmi2Variability


class Gain2(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.a, self.b = 0.0, 2.0, 1.0
        fixed = dict(causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed)
        self.register_variable(Real("u", causality=Fmi2Causality.input))
        self.register_variable(Real("a", **fixed))
        self.register_variable(Real("b", **fixed))
        self.register_variable(Real("y", causality=Fmi2Causality.output,
                                  getter=lambda: self.a * self.u + self.b))

    def do_step(self, current_time, step_size):
        return True
