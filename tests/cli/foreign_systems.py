"""Small systems with the naming habits of other tools: what `cardan new` has not been developed on.

Each system: unit -> (inputs, outputs) as "name[unit]" without brackets where no unit is told, and the connections that
whoever knows the models would make.
"""


def v(*names):
    return names


SYSTEMS = {
    # OpenModelica: flattened names of connectors and blocks
    "om_shaft": ({"engine": (v("flange.w[rad/s]"), v("flange.tau[N.m]")),
                  "load": (v("flange.tau[N.m]"), v("flange.w[rad/s]"))},
                 ["engine.flange.tau -> load.flange.tau", "load.flange.w -> engine.flange.w"]),
    "om_body": ({"arm": (v("body.frame_a.f[1][N]", "body.frame_a.f[2][N]"), v("body.frame_a.r_0[1][m]", "body.frame_a.r_0[2][m]")),
                 "spring": (v("frame_b.r_0[1][m]", "frame_b.r_0[2][m]"), v("frame_b.f[1][N]", "frame_b.f[2][N]"))},
                ["spring.frame_b.f[1] -> arm.body.frame_a.f[1]", "spring.frame_b.f[2] -> arm.body.frame_a.f[2]",
                 "arm.body.frame_a.r_0[1] -> spring.frame_b.r_0[1]", "arm.body.frame_a.r_0[2] -> spring.frame_b.r_0[2]"]),
    "om_pi": ({"PI": (v("u"), v("y")), "plant": (v("u"), v("y"))}, ["PI.y -> plant.u", "plant.y -> PI.u"]),
    "om_heat": ({"room": (v("port.Q_flow[W]"), v("port.T[K]")), "heater": (v("port.T[K]"), v("port.Q_flow[W]"))},
                ["heater.port.Q_flow -> room.port.Q_flow", "room.port.T -> heater.port.T"]),
    "om_pipe": ({"pump": (v("port_b.p[Pa]"), v("port_b.m_flow[kg/s]")), "tank": (v("port_a.m_flow[kg/s]"), v("port_a.p[Pa]"))},
                ["pump.port_b.m_flow -> tank.port_a.m_flow", "tank.port_a.p -> pump.port_b.p"]),
    # Simulink: In1, Out1; signal names with _in, _out, Cmd, Fbk
    "sl_ports": ({"Controller": (v("In1"), v("Out1")), "Plant": (v("In1"), v("Out1"))},
                 ["Controller.Out1 -> Plant.In1", "Plant.Out1 -> Controller.In1"]),
    "sl_motor": ({"Drive": (v("SpdFbk[rad/s]"), v("TrqCmd[N.m]")), "Motor": (v("TrqCmd[N.m]"), v("SpdFbk[rad/s]"))},
                 ["Drive.TrqCmd -> Motor.TrqCmd", "Motor.SpdFbk -> Drive.SpdFbk"]),
    "sl_camel": ({"Ecu": (v("engineSpeed", "vehicleSpeed"), v("throttleAngle", "brakeRequest")),
                  "Vehicle": (v("throttleAngle", "brakeRequest"), v("engineSpeed", "vehicleSpeed"))},
                 ["Ecu.throttleAngle -> Vehicle.throttleAngle", "Ecu.brakeRequest -> Vehicle.brakeRequest",
                  "Vehicle.engineSpeed -> Ecu.engineSpeed", "Vehicle.vehicleSpeed -> Ecu.vehicleSpeed"]),
    "sl_suffix": ({"Ctl": (v("speed_in"), v("torque_out")), "Mot": (v("torque_in"), v("speed_out"))},
                  ["Ctl.torque_out -> Mot.torque_in", "Mot.speed_out -> Ctl.speed_in"]),
    "sl_bus": ({"A": (v("Bus_B.pos", "Bus_B.vel"), v("Bus_A.force")), "B": (v("Bus_A.force"), v("Bus_B.pos", "Bus_B.vel"))},
               ["A.Bus_A.force -> B.Bus_A.force", "B.Bus_B.pos -> A.Bus_B.pos", "B.Bus_B.vel -> A.Bus_B.vel"]),
    # German
    "de_antrieb": ({"Motor": (v("Drehzahl[rad/s]"), v("Drehmoment[N.m]")), "Getriebe": (v("Drehmoment[N.m]"), v("Drehzahl[rad/s]"))},
                   ["Motor.Drehmoment -> Getriebe.Drehmoment", "Getriebe.Drehzahl -> Motor.Drehzahl"]),
    "de_ein_aus": ({"Regler": (v("Istwert"), v("Stellgroesse")), "Strecke": (v("Stellgroesse"), v("Istwert"))},
                   ["Regler.Stellgroesse -> Strecke.Stellgroesse", "Strecke.Istwert -> Regler.Istwert"]),
    "de_index": ({"Feder": (v("Weg_rein[m]"), v("Kraft_raus[N]")), "Masse": (v("Kraft_rein[N]"), v("Weg_raus[m]"))},
                 ["Feder.Kraft_raus -> Masse.Kraft_rein", "Masse.Weg_raus -> Feder.Weg_rein"]),
    "de_kuehlung": ({"Pumpe": (v("Temperatur[K]"), v("Volumenstrom[m3/s]")), "Kuehler": (v("Volumenstrom[m3/s]"), v("Temperatur[K]"))},
                    ["Pumpe.Volumenstrom -> Kuehler.Volumenstrom", "Kuehler.Temperatur -> Pumpe.Temperatur"]),
    # units of measure are missing on one side, or differ
    "nounit_one": ({"a": (v("speed"), v("torque[N.m]")), "b": (v("torque"), v("speed[rad/s]"))},
                   ["a.torque -> b.torque", "b.speed -> a.speed"]),
    "unit_rpm": ({"bench": (v("n[1/min]"), v("T[N.m]")), "car": (v("T[N.m]"), v("n[rad/s]"))},
                 ["bench.T -> car.T", "car.n -> bench.n"]),
    "unit_degc": ({"oil": (v("heat[W]"), v("temperature[degC]")), "gear": (v("temperature[K]"), v("heat[W]"))},
                  ["oil.temperature -> gear.temperature", "gear.heat -> oil.heat"]),
    # abbreviations and their words
    "abbrev": ({"m": (v("trq[N.m]"), v("spd[rad/s]")), "d": (v("speed[rad/s]"), v("torque[N.m]"))},
               ["d.torque -> m.trq", "m.spd -> d.speed"]),
    "greek": ({"shaft1": (v("omega[rad/s]"), v("tau[N.m]")), "shaft2": (v("tau[N.m]"), v("omega[rad/s]"))},
              ["shaft1.tau -> shaft2.tau", "shaft2.omega -> shaft1.omega"]),
    "ref_act": ({"ctrl": (v("speed_act[rad/s]"), v("torque_ref[N.m]")), "drive": (v("torque_ref[N.m]"), v("speed_act[rad/s]"))},
                ["ctrl.torque_ref -> drive.torque_ref", "drive.speed_act -> ctrl.speed_act"]),
    # GT, AMESim, MATLAB: names of the other unit in the name
    "to_from": ({"engine": (v("speed_from_gearbox[rad/s]"), v("torque_to_gearbox[N.m]")),
                 "gearbox": (v("torque_from_engine[N.m]"), v("speed_to_engine[rad/s]"))},
                ["engine.torque_to_gearbox -> gearbox.torque_from_engine", "gearbox.speed_to_engine -> engine.speed_from_gearbox"]),
    "expseu": ({"amesim": (v("expseu_.F[N]"), v("expseu_.x[m]")), "ctrl": (v("x[m]"), v("F[N]"))},
               ["ctrl.F -> amesim.expseu_.F", "amesim.expseu_.x -> ctrl.x"]),
    "electric": ({"source": (v("i[A]"), v("v[V]")), "load": (v("v[V]"), v("i[A]"))}, ["source.v -> load.v", "load.i -> source.i"]),
    "battery": ({"pack": (v("current[A]"), v("voltage[V]", "soc")), "inverter": (v("voltage_dc[V]"), v("current_dc[A]"))},
                ["inverter.current_dc -> pack.current", "pack.voltage -> inverter.voltage_dc"]),
    # three units, one output to two inputs
    "three": ({"driver": (v("vehicle_speed[m/s]"), v("pedal")), "engine": (v("pedal", "wheel_speed[rad/s]"), v("wheel_torque[N.m]")),
               "vehicle": (v("wheel_torque[N.m]"), v("vehicle_speed[m/s]", "wheel_speed[rad/s]"))},
              ["driver.pedal -> engine.pedal", "engine.wheel_torque -> vehicle.wheel_torque",
               "vehicle.vehicle_speed -> driver.vehicle_speed", "vehicle.wheel_speed -> engine.wheel_speed"]),
    "fan_out": ({"clock": (v(), v("enable")), "p1": (v("enable"), v("flow1")), "p2": (v("enable"), v("flow2"))},
                ["clock.enable -> p1.enable", "clock.enable -> p2.enable"]),
    "wheels": ({"chassis": (v("Fz_FL[N]", "Fz_FR[N]"), v("z_FL[m]", "z_FR[m]")), "tyres": (v("z_FL[m]", "z_FR[m]"), v("Fz_FL[N]", "Fz_FR[N]"))},
               ["chassis.z_FL -> tyres.z_FL", "chassis.z_FR -> tyres.z_FR", "tyres.Fz_FL -> chassis.Fz_FL", "tyres.Fz_FR -> chassis.Fz_FR"]),
    "crane": ({"cyl": (v("v_piston[m/s]"), v("F_piston[N]")), "boom": (v("F_cylinder[N]"), v("v_cylinder[m/s]"))},
              ["cyl.F_piston -> boom.F_cylinder", "boom.v_cylinder -> cyl.v_piston"]),
    # nothing is to be connected
    "strangers": ({"weather": (v(), v("irradiance[W/m2]")), "pump": (v("rpm[1/min]"), v("flow[m3/s]"))}, []),
    "same_side": ({"left": (v("x[m]"), v("F[N]")), "right": (v("x[m]"), v("F[N]"))}, []),
}
