"""Raises an exception in the step that begins at 0.5 s."""
from pythonfmu import Real, Fmi2Causality, Fmi2Slave


class Broken2(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.y = 0.0
        self.register_variable(Real("y", causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        self.y = current_time + step_size
        if current_time > 0.495:
            raise RuntimeError("out of cheese")
        return True
