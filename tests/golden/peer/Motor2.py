"""A motor whose torque falls with the speed, late by a first-order lag (pythonfmu, FMI 2.0)."""
from pythonfmu import DefaultExperiment, Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class Motor2(Fmi2Slave):
    default_experiment = DefaultExperiment(start_time=0, stop_time=2, step_size=0.001)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.stall, self.idle, self.lag = 4.0, 100.0, 0.02
        self.speed, self.torque = 0.0, 0.0
        for name in ("stall", "idle", "lag"):
            self.register_variable(Real(name, causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed))
        self.register_variable(Real("speed", causality=Fmi2Causality.input))
        self.register_variable(Real("torque", causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        wanted = self.stall * (1 - self.speed / self.idle)
        self.torque += step_size / self.lag * (wanted - self.torque)
        return True
