// What the mocks of FMI 2.0 and 3.0 do alike. They say first how it is spelled: NAME(x) is fmi2 or
// fmi3 and x, NUMBER(x) the number of that function, TRUTH the type of a Boolean.

// Instances and states that are never freed must not look lost to a leak checker.
static void* kept[64];

static void keep(void* from, void* to)
{
    for (int n = 0; n < 64; n++) {
        if (kept[n] == from) {
            kept[n] = to;
            return;
        }
    }
}

static crdi_fmi_status enter(const mock_instance* m, int function)
{
    mock_block* k = &mock_control;
    k->count[function]++;
    if (k->calls < MOCK_TRACE) { k->trace[k->calls] = function; }
    k->calls++;
    if (m && (k->format || k->log_status)) { mock_log(m, k); }
    return k->status[function];
}

// ---- Model Exchange: x = 1, 2, ..., x' = t x, z = t - x
// ------------------------------------------

crdi_fmi_status NAME(SetTime)(void* c, double t)
{
    ((mock_instance*)c)->t = t;
    return enter(c, NUMBER(SetTime));
}

crdi_fmi_status NAME(SetContinuousStates)(void* c, const double* x, size_t nx)
{
    memcpy(((mock_instance*)c)->reals, x, nx * sizeof *x);
    return enter(c, NUMBER(SetContinuousStates));
}

crdi_fmi_status NAME(GetContinuousStates)(void* c, double* x, size_t nx)
{
    memcpy(x, ((mock_instance*)c)->reals, nx * sizeof *x);
    return enter(c, NUMBER(GetContinuousStates));
}

crdi_fmi_status NAME(DERIVATIVES)(void* c, double* dx, size_t nx)
{
    const mock_instance* m = c;
    for (size_t k = 0; k < nx; k++) {
        dx[k] = m->t * m->reals[k];
    }
    return enter(c, NUMBER(DERIVATIVES));
}

crdi_fmi_status NAME(GetEventIndicators)(void* c, double* z, size_t nz)
{
    const mock_instance* m = c;
    for (size_t k = 0; k < nz; k++) {
        z[k] = m->t - m->reals[k];
    }
    return enter(c, NUMBER(GetEventIndicators));
}

crdi_fmi_status NAME(GetNominalsOfContinuousStates)(void* c, double* x, size_t nx)
{
    for (size_t k = 0; k < nx; k++) {
        x[k] = 10;
    }
    return enter(c, NUMBER(GetNominalsOfContinuousStates));
}

crdi_fmi_status NAME(CompletedIntegratorStep)(void* c, TRUTH no_rollback, TRUTH* enter_event_mode,
                                              TRUTH* terminate)
{
    mock_control.no_rollback = no_rollback;
    *enter_event_mode = mock_control.enter_event_mode;
    *terminate = mock_control.completed_terminate;
    return enter(c, NUMBER(CompletedIntegratorStep));
}
