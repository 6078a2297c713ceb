"""Raises an exception in the step that begins at 0.5 s."""
from pythonfmu3 import Float64, Fmi3Causality, Fmi3Slave


class Broken3(Fmi3Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.y = 0.0
        self.register_variable(Float64("y", causality=Fmi3Causality.output))

    def do_step(self, current_time, step_size):
        self.y = current_time + step_size
        if current_time > 0.495:
            raise RuntimeError("out of cheese")
        return True
