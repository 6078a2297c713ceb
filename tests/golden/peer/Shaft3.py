"""A shaft with friction (pythonfmu3, FMI 3.0)."""
from pythonfmu3 import DefaultExperiment, Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability


class Shaft3(Fmi3Slave):
    default_experiment = DefaultExperiment(start_time=0, stop_time=2, step_size=0.001)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time, self.inertia, self.friction = 0.0, 0.02, 0.01
        self.torque, self.speed = 0.0, 0.0
        self.register_variable(Float64("time", causality=Fmi3Causality.independent, variability=Fmi3Variability.continuous))
        for name in ("inertia", "friction"):
            self.register_variable(Float64(name, causality=Fmi3Causality.parameter, variability=Fmi3Variability.fixed))
        self.register_variable(Float64("torque", causality=Fmi3Causality.input))
        self.register_variable(Float64("speed", causality=Fmi3Causality.output))

    def do_step(self, current_time, step_size):
        self.speed += step_size * (self.torque - self.friction * self.speed) / self.inertia
        return True
