#!/usr/bin/env python3
"""Independent computation of the reference numbers of `cardan reproduce rodriguez2021-ch6`.

e-Car of Table 6.2 with the rotor and the friction of the motor under test on its front wheel, not cut (RK4,
20 us), and the heat of the 200 kW bench in continuous duty (RK4, 10 ms). Prints what rodriguez2021_ch6*.c has.
"""
from math import cos, pi, sin

# ---- e-Car: (6.1), (6.2), Table 6.2; rotor 170 g cm^2 and half of the couplings, no-load current 726 mA
L, H, R, M, G, K, C, S0 = 0.18, 0.01, 0.04, 2.0, 9.81, 3e3, 1e2, 0.04
JZ = M * (0.25 * L * L + H * H)
JROT, FRICTION, LAG = 175e-7, 0.726 * 48.6e-3, 61e-6 / 44.7e-3 / 3


def accelerations(x, tau):
    _, y, th, vx, vy, om = x
    sn, cs = sin(th), cos(th)
    sF, sR = y + L / 2 * sn - H * cs - R, y - L / 2 * sn - H * cs - R
    aF, aR = L / 2 * cs + H * sn, -L / 2 * cs + H * sn
    NF, NR = K * (S0 - sF) - C * (vy + aF * om), K * (S0 - sR) - C * (vy + aR * om)
    g4 = -L / 2 * sn + H * cs
    return (tau / R / M, (NF + NR) / M - G, (NF * aF + NR * aR + tau / R * g4 + tau) / JZ), g4


def wheel_acceleration(x, tau):
    """of the front wheel: x_A' = vx + g4 om, g4' = -(L/2 cos th + H sin th) om"""
    (ax, _, ath), g4 = accelerations(x, tau)
    _, _, th, _, _, om = x
    return (ax + g4 * ath - (L / 2 * cos(th) + H * sin(th)) * om * om) / R


def right(t, x):
    # x: x y th vx vy om, motor torque; what goes into the wheel is tau = motor - friction - JROT w'
    car, motor = x[:6], x[6]
    demand = 0.2 if 0.5 <= t < 1.5 else 0.0
    w = (car[3] + (-L / 2 * sin(car[2]) + H * cos(car[2])) * car[5]) / R
    free = motor - FRICTION * max(-1, min(1, w / 0.5))
    w0 = wheel_acceleration(car, 0.0)
    w1 = wheel_acceleration(car, 1.0) - w0
    tau = (free - JROT * w0) / (1 + JROT * w1)
    a, _ = accelerations(car, tau)
    return [*car[3:], *a, (demand - motor) / LAG]


def rk4(f, t, x, h):
    k1 = f(t, x)
    k2 = f(t + h / 2, [a + h / 2 * b for a, b in zip(x, k1)])
    k3 = f(t + h / 2, [a + h / 2 * b for a, b in zip(x, k2)])
    k4 = f(t + h, [a + h * b for a, b in zip(x, k3)])
    return [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(x, k1, k2, k3, k4)]


def ecar(h=2e-5):
    y0 = R + H + S0 - M * G / (2 * K)
    x = [0, y0, 0, 0, 0, 0, 0]
    pitch, squat = 0, S0
    n = round(2 / h)
    for i in range(n):
        t = i * h
        x = rk4(lambda s, y: right(t + 1e-9 if s == t else min(s, t + h - 1e-9), y), t, x, h)
        pitch = max(pitch, abs(x[2]))
        sF = x[1] + L / 2 * sin(x[2]) - H * cos(x[2]) - R
        squat = min(squat, sF, sF - L * sin(x[2]))
        if i + 1 == round(1.5 / h):
            print("ecar v(1.5) = %.6f m/s" % x[3])
    print("ecar at rest y = %.6f m, J = %.6f" % (y0, JZ))
    print("ecar v(2) = %.6f m/s, x(2) = %.6f m, pitch %.6f rad, shortest suspension %.6f m" % (x[3], x[0], pitch, squat))


# ---- the bench around a model: filter of the set value 5 ms; proportional-integral control of the load by the
# symmetrical optimum for its torque's lag of 0.5 ms. When the motor pushes, the shaft gives way for a moment, and
# friction begins: with a load that held its speed exactly all of it would be some 3.5 ms less late.
class Bench:
    """Ticks of 0.1 ms; the load cell is sampled each ms: low-pass 5 ms, dead time 1 ms. No noise."""
    def __init__(self):
        self.w = self.motor = self.load = self.integral = self.reference = self.cell = self.late = 0.0
        self.measured, self.tick, self.energy = 0.0, 0, 0.0

    def run(self, seconds, torque, speed):
        dt, total, lag = 1e-4, 350e-7, 0.5e-3
        weight = 1 - 2.718281828459045 ** (-1e-3 / 5e-3)
        for _ in range(round(seconds / dt)):
            rate = (speed - self.reference) / 5e-3
            self.reference += rate * dt
            error, gain = self.reference - self.w, total / (3 * lag)
            demand = gain * error + self.integral + total * rate
            self.integral += gain / (9 * lag) * error * dt
            self.load += (demand - self.load) * dt / lag
            self.motor += (torque - self.motor) * dt / LAG
            friction = FRICTION * max(-1, min(1, self.w / 0.5))
            a = (self.motor + self.load - 2 * friction) / total
            shaft = self.motor - friction - JROT * a
            self.w += a * dt
            self.energy += shaft * self.w * dt
            self.tick += 1
            if self.tick % 10 == 0:
                self.measured, self.late = self.late, self.cell + (shaft - self.cell) * weight
                self.cell = self.late


def inertia(J, step):
    b, w = Bench(), 0.0
    for _ in range(round(1 / step)):
        w += step * b.measured / J
        b.run(step, 0.2, w)
    a = (0.2 - FRICTION) / (J + JROT)
    return 1e3 * (a - b.w) / a  # ms


def coupled_car(step):
    b, x = Bench(), [0, R + H + S0 - M * G / (2 * K), 0, 0, 0, 0]
    into, v15 = 0.0, 0.0

    def wheel():
        return (x[3] + (-L / 2 * sin(x[2]) + H * cos(x[2])) * x[5]) / R
    for i in range(round(2 / step)):
        t, tau, before = i * step, b.measured, wheel()
        b.run(step, 0.2 if 0.5 - step / 2 < t < 1.5 - step / 2 else 0.0, before)
        for _ in range(10):
            x = rk4(lambda s, y: [*y[3:], *accelerations(y, tau)[0]], t, x, step / 10)
        into += tau * 0.5 * (before + wheel()) * step
        if i + 1 == round(1.5 / step):
            v15 = x[3]
    return v15, x[3], x[0], (into - b.energy) / b.energy


# ---- 200 kW bench: winding, housing, coolant held at 65 degC; 100 kW at 4775 1/min for 10 min from 65 degC
def heat(torque=200.0, rpm=4775.0, minutes=10):
    w = rpm * pi / 30
    # what is felt at the flange is the rotor's torque; copper by the phase current, 550 A for 400 N m
    i = torque * 550 / 400

    def f(t, x):
        cu = 3 * 5e-3 * i * i * (1 + 0.0039 * (x[0] - 65))
        a, b = 30 * (x[0] - x[1]), 120 * (x[1] - 65)
        return [(cu - a) / 5e3, (0.8 * w + 0.0008 * w * w + a - b) / 15e3]
    x = [65.0, 65.0]
    for n in range(minutes * 60 * 100):
        x = rk4(f, 0, x, 0.01)
    inverter = 150 + 3 * i + 0.003 * i * i
    cu = 3 * 5e-3 * i * i * (1 + 0.0039 * (x[0] - 65))
    print("S1 %g N.m, %g 1/min, %d min: winding %.4f degC, housing %.4f; dc %.1f W, ac %.1f W, mech at the rotor %.1f W" %
          (torque, rpm, minutes, x[0], x[1], torque * w + cu + 0.8 * w + 0.0008 * w * w + inverter,
           torque * w + cu + 0.8 * w + 0.0008 * w * w, torque * w))


if __name__ == "__main__":
    ecar()
    for J in (5e-4, 1e-3, 2e-3, 5e-3):
        print("inertia %g:" % J, ", ".join("%.2f" % inertia(J, h) for h in (1e-3, 2e-3, 5e-3, 1e-2)), "ms")
    for h in (1e-3, 2e-3, 5e-3, 1e-2):
        print("e-Car coupled, %g ms: v(1.5) %.5f, v(2) %.5f, x(2) %.5f, created %.5f" % (1e3 * h, *coupled_car(h)))
    heat()
    heat(minutes=120)
    heat(torque=400, rpm=4774.65, minutes=1)
