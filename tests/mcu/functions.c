// Functions of <math.h> out of +, -, *, / and what is exact, to about 1e-12: in their places, bits
// of a board and of the host can be compared although their C libraries round differently.
// Compiled with -fno-builtin.
#include <math.h>

double exp(double x)
{
    const double z = x / 1024;
    double sum = 0;
    for (int n = 16; n > 0; n--) {
        sum = (1 + sum) * z / n; // exp(z) - 1
    }
    for (int n = 0; n < 10; n++) {
        sum = sum * (2 + sum);
    }
    return 1 + sum;
}

double expm1(double x)
{
    double sum = 0;
    for (int n = 20; n > 0; n--) {
        sum = (1 + sum) * x / n;
    }
    return fabs(x) < 0.5 ? sum : exp(x) - 1;
}

double log1p(double x)
{
    const double z = x / (2 + x); // log((1 + z) / (1 - z)) = 2 (z + z^3 / 3 + ...)
    double sum = 0;
    for (int n = 45; n > 0; n -= 2) {
        sum = sum * z * z + 1.0 / n;
    }
    return fabs(x) < 0.5 ? 2 * z * sum : log(1 + x);
}

double log(double x)
{
    int exponent;
    const double m = frexp(x, &exponent);
    return exponent * 0.6931471805599453 +
           (m < 0.75 ? log1p(2 * m - 1) - 0.6931471805599453 : log1p(m - 1));
}

double sin(double x)
{
    const double two_pi = 6.283185307179586;
    const double z = x - two_pi * floor(x / two_pi + 0.5);
    double sum = 0;
    for (int n = 31; n > 1; n -= 2) {
        sum = -(1 + sum) * z * z / (n * (n - 1.0));
    }
    return z * (1 + sum);
}

double cos(double x)
{
    return sin(x + 1.5707963267948966);
}

// Of libcardan-core in single precision
float expf(float x)
{
    return (float)exp(x);
}

float sinf(float x)
{
    return (float)sin(x);
}

float cosf(float x)
{
    return (float)cos(x);
}

double tanh(double x)
{
    const double e = expm1(2 * fmin(x, 20));
    return e / (e + 2);
}

double pow(double x, double y)
{
    if (x == 0) { return y == 0 ? 1 : y > 0 ? 0 : INFINITY; }
    const double p = exp(y * log(fabs(x)));
    return x < 0 && fmod(y, 2) != 0 ? -p : p;
}
