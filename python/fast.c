// What is called a million times from Python: a step, a value, a unit written in Python. Everything
// else goes through ctypes. Built against the limited API, so that one file serves every CPython
// from 3.9 on; it is not linked with libcardan but told where its functions are.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "cardan/master.h"
#include "cardan/model.h"

#include <string.h>

static struct {
    crd_status (*advance)(crd_master* m, int64_t ticks);
    crd_end (*ended)(const crd_master* m);
    double (*time)(const crd_master* m);
    crd_status (*get)(crd_master* m, int handle, double* values);
    crd_status (*set)(crd_master* m, int handle, const double* values);
    void (*cancel)(crd_master* m);
} library;

static void keep(PyObject** at, PyObject* value)
{
    PyObject* before = *at;
    Py_INCREF(value);
    *at = value;
    Py_XDECREF(before);
}

// ---- a run -------------------------------------------------------------------------------------

typedef struct run {
    PyObject_HEAD crd_master* master; // NULL: closed
    PyObject* handles;                // name -> handle of a single number
    PyObject* fail;                   // Run's: says what went wrong
    PyObject *advance, *get, *set;    // Run's, for all but the usual
    PyObject* owner;                  // weak: the Run, which stays while somebody is inside
    bool failed;                      // a unit in Python has
    bool busy; // somebody is inside: one at a time, the interpreter's lock keeps it
} run;

enum {
    BUSY = 1,   // of Run._check
    SLICE = 256 // steps; more of them are made in slices, between which Python sees Ctrl-C
};

static int run_init(run* r, PyObject* arguments, PyObject* named)
{
    static char* words[] = {"master", "fail", "advance", "get", "set", "owner", NULL};
    unsigned long long at = 0;
    PyObject *fail, *advance, *get, *set, *owner;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "KOOOOO", words, &at, &fail, &advance, &get,
                                     &set, &owner)) {
        return -1;
    }
    Py_XDECREF(r->handles);
    r->handles = PyDict_New();
    r->master = (crd_master*)(uintptr_t)at;
    keep(&r->fail, fail);
    keep(&r->advance, advance);
    keep(&r->get, get);
    keep(&r->set, set);
    keep(&r->owner, owner);
    return r->handles ? 0 : -1;
}

static int run_traverse(run* r, visitproc visit, void* arg)
{
    Py_VISIT(Py_TYPE(r));
    Py_VISIT(r->handles);
    Py_VISIT(r->fail);
    Py_VISIT(r->advance);
    Py_VISIT(r->get);
    Py_VISIT(r->set);
    Py_VISIT(r->owner);
    return 0;
}

static int run_clear(run* r)
{
    Py_CLEAR(r->handles);
    Py_CLEAR(r->fail);
    Py_CLEAR(r->advance);
    Py_CLEAR(r->get);
    Py_CLEAR(r->set);
    Py_CLEAR(r->owner);
    return 0;
}

static void run_dealloc(run* r)
{
    PyTypeObject* type = Py_TYPE(r);
    PyObject_GC_UnTrack(r);
    run_clear(r);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(r);
    Py_DECREF(type);
}

// Run._fail(status) raises; a status that is none goes on.
static bool run_check(run* r, int status)
{
    if (status >= 0 && !r->failed) { return true; }
    r->failed = false;
    PyObject* said = r->fail ? PyObject_CallFunction(r->fail, "i", status) : NULL;
    const bool raised = PyErr_Occurred() != NULL;
    if (!raised && status < 0) { PyErr_SetString(PyExc_RuntimeError, "the run is closed"); }
    Py_XDECREF(said);
    return !raised && status >= 0;
}

// False, and an exception, if somebody is inside already: another thread, or a unit's own code.
static bool run_enter(run* r)
{
    if (r->busy) {
        PyObject* said = r->fail ? PyObject_CallFunction(r->fail, "i", BUSY) : NULL;
        if (!PyErr_Occurred()) { PyErr_SetString(PyExc_RuntimeError, "the run is at work"); }
        Py_XDECREF(said);
        return false;
    }
    r->busy = true;
    return true;
}

static PyObject* run_advance(run* r, PyObject* arguments, PyObject* named)
{
    static char* words[] = {"steps", NULL};
    long long steps = 1;
    int status = CRD_E_STATE, end = 0, over = 0;
    PyObject* given = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|O:advance", words, &given)) {
        return NULL;
    }
    if (given) {
        steps = PyLong_CheckExact(given) ? PyLong_AsLongLongAndOverflow(given, &over) : -1;
        if (over || steps < 0 || steps > SLICE) {
            return r->advance ? PyObject_CallFunctionObjArgs(r->advance, given, NULL) : NULL;
        }
    }
    if (!run_enter(r)) { return NULL; }
    PyObject* owner = r->owner ? PyWeakref_GetObject(r->owner) : NULL;
    Py_XINCREF(owner);
    if (r->master) {
        crd_master* m = r->master;
        PyThreadState* state = PyEval_SaveThread();
        status = library.advance(m, steps);
        end = (int)library.ended(m);
        PyEval_RestoreThread(state);
    }
    const bool fine = run_check(r, status);
    r->busy = false;
    if (owner) { // which may go now, whatever has gone wrong
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        Py_DECREF(owner);
        PyErr_Restore(kind, error, trace);
    }
    return fine ? PyBool_FromLong(end == CRD_END_NONE) : NULL;
}

static PyObject* run_time(run* r, PyObject* none)
{
    (void)none;
    if (!r->master && !run_check(r, CRD_E_STATE)) { return NULL; }
    return PyFloat_FromDouble(library.time(r->master));
}

static PyObject* run_ended(run* r, PyObject* none)
{
    (void)none;
    if (!r->master && !run_check(r, CRD_E_STATE)) { return NULL; }
    return PyLong_FromLong((long)library.ended(r->master));
}

static PyObject* run_cancel(run* r, PyObject* none)
{
    (void)none;
    if (!r->master && !run_check(r, CRD_E_STATE)) { return NULL; }
    library.cancel(r->master);
    Py_RETURN_NONE;
}

// -1: not a single number, or not known yet. -2: an exception.
static int find(run* r, PyObject* name)
{
    if (!r->handles) { return -1; }
    PyObject* known = PyDict_GetItemWithError(r->handles, name);
    if (known) { return (int)PyLong_AsLong(known); }
    return PyErr_Occurred() ? -2 : -1;
}

static PyObject* run_get(run* r, PyObject* arguments, PyObject* named)
{
    static char* words[] = {"name", NULL};
    double x = 0;
    PyObject* name;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O:get", words, &name)) { return NULL; }
    const int handle = find(r, name);
    if (handle == -2) { PyErr_Clear(); }
    if (handle < 0 || !r->master) {
        return r->get ? PyObject_CallFunctionObjArgs(r->get, name, NULL) : NULL; // knows it then
    }
    if (!run_enter(r)) { return NULL; }
    const bool fine = run_check(r, library.get(r->master, handle, &x));
    r->busy = false;
    return fine ? PyFloat_FromDouble(x) : NULL;
}

static PyObject* run_set(run* r, PyObject* arguments, PyObject* named)
{
    static char* words[] = {"name", "value", NULL};
    PyObject *name, *value;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OO:set", words, &name, &value)) {
        return NULL;
    }
    const int handle = find(r, name);
    if (handle == -2) { PyErr_Clear(); }
    const bool usual = handle >= 0 && r->master && (PyFloat_Check(value) || PyLong_Check(value));
    const double x = usual ? PyFloat_AsDouble(value) : 0; // may be code that closes the run
    const bool refused = PyErr_Occurred() != NULL;
    if (refused) { PyErr_Clear(); }
    if (!usual || refused) {
        return r->set ? PyObject_CallFunctionObjArgs(r->set, name, value, NULL) : NULL;
    }
    if (!run_enter(r)) { return NULL; }
    const bool fine =
        run_check(r, r->master ? library.set(r->master, handle, &x) : (int)CRD_E_STATE);
    r->busy = false;
    if (!fine) { return NULL; }
    Py_RETURN_NONE;
}

static PyObject* run_go_in(run* r, PyObject* none)
{
    (void)none;
    if (!run_enter(r)) { return NULL; }
    Py_RETURN_NONE;
}

static PyObject* run_go_out(run* r, PyObject* none)
{
    (void)none;
    r->busy = false;
    Py_RETURN_NONE;
}

static PyObject* run_know(run* r, PyObject* arguments)
{
    PyObject *name, *handle;
    if (!PyArg_ParseTuple(arguments, "OO", &name, &handle) || !r->handles ||
        PyDict_SetItem(r->handles, name, handle) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject* run_flag(run* r, PyObject* none)
{
    (void)none;
    r->failed = true;
    Py_RETURN_NONE;
}

static PyObject* run_close(run* r, PyObject* none)
{
    (void)none;
    r->master = NULL; // whoever still has a method is told by `fail`
    Py_RETURN_NONE;
}

static PyMethodDef run_methods[] = {
    {"advance", (PyCFunction)(void*)run_advance, METH_VARARGS | METH_KEYWORDS, NULL},
    {"time", (PyCFunction)(void*)run_time, METH_NOARGS, NULL},
    {"get", (PyCFunction)(void*)run_get, METH_VARARGS | METH_KEYWORDS, NULL},
    {"set", (PyCFunction)(void*)run_set, METH_VARARGS | METH_KEYWORDS, NULL},
    {"ended", (PyCFunction)(void*)run_ended, METH_NOARGS, NULL},
    {"cancel", (PyCFunction)(void*)run_cancel, METH_NOARGS, NULL},
    {"__enter__", (PyCFunction)(void*)run_go_in, METH_NOARGS, "one at a time"},
    {"__exit__", (PyCFunction)(void*)run_go_out, METH_VARARGS, NULL},
    {"know", (PyCFunction)(void*)run_know, METH_VARARGS, "name, handle of a single number"},
    {"flag", (PyCFunction)(void*)run_flag, METH_NOARGS, "a unit in Python has failed"},
    {"close", (PyCFunction)(void*)run_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_init, (void*)run_init},
    {Py_tp_dealloc, (void*)run_dealloc},
    {Py_tp_traverse, (void*)run_traverse},
    {Py_tp_clear, (void*)run_clear},
    {Py_tp_methods, run_methods},
    {Py_tp_new, (void*)PyType_GenericNew},
    {0, NULL},
};
static PyType_Spec run_spec = {"cardan._fast.Run", sizeof(run), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, run_slots};

// ---- a function as a unit ----------------------------------------------------------------------

// Its variables as crd_model.size bytes: inputs, parameters, outputs; before them this pointer,
// which is no part of the state (crd_model.kept).
typedef struct function {
    PyObject_HEAD PyObject *call, *names, *slow; // the function; names of parameters; Instance's
                                                 // way, when it is not one number that comes
    int inputs, parameters, outputs;
    bool time, broken;
} function;

static int function_init(function* f, PyObject* arguments, PyObject* named)
{
    (void)named;
    PyObject *call, *names, *slow;
    int takes_time = 0;
    if (!PyArg_ParseTuple(arguments, "OOOiiip", &call, &names, &slow, &f->inputs, &f->parameters,
                          &f->outputs, &takes_time)) {
        return -1;
    }
    f->time = takes_time;
    keep(&f->call, call);
    keep(&f->names, names);
    keep(&f->slow, slow);
    return 0;
}

static int function_traverse(function* f, visitproc visit, void* arg)
{
    Py_VISIT(Py_TYPE(f));
    Py_VISIT(f->call);
    Py_VISIT(f->names);
    Py_VISIT(f->slow);
    return 0;
}

static int function_clear(function* f)
{
    Py_CLEAR(f->call);
    Py_CLEAR(f->names);
    Py_CLEAR(f->slow);
    return 0;
}

static void function_dealloc(function* f)
{
    PyTypeObject* type = Py_TYPE(f);
    PyObject_GC_UnTrack(f);
    function_clear(f);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(f);
    Py_DECREF(type);
}

static PyObject* function_result(function* f, const double* x, double t)
{
    const int first = f->time ? 1 : 0;
    PyObject *named = NULL, *y = NULL, *arguments = PyTuple_New(f->inputs + first);
    for (int i = 0; arguments && i < f->inputs + first; i++) {
        PyObject* number = PyFloat_FromDouble(i < first ? t : x[i - first]);
        if (!number || PyTuple_SetItem(arguments, i, number) < 0) { Py_CLEAR(arguments); }
    }
    if (f->parameters && arguments) { named = PyDict_New(); }
    for (int i = 0; named && i < f->parameters; i++) {
        PyObject* number = PyFloat_FromDouble(x[f->inputs + i]);
        if (!number || PyDict_SetItem(named, PyTuple_GetItem(f->names, i), number) < 0) {
            Py_CLEAR(named);
        }
        Py_XDECREF(number);
    }
    if (arguments && (named || !f->parameters)) { y = PyObject_Call(f->call, arguments, named); }
    Py_XDECREF(arguments);
    Py_XDECREF(named);
    return y;
}

static void function_outputs(void* self, double t)
{
    char* at = self;
    function* f;
    memcpy(&f, at, sizeof f);
    if (!f) { return; }
    double* x = (double*)(void*)(at + sizeof(void*));
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject* y = function_result(f, x, t);
    if (y && f->outputs == 1 && PyFloat_Check(y)) {
        x[f->inputs + f->parameters] = PyFloat_AsDouble(y);
    } else { // its way of saying what is wrong, too: Instance._take_result(address, result, error)
        PyObject *kind = NULL, *error = NULL, *trace = NULL;
        if (!y) {
            PyErr_Fetch(&kind, &error, &trace);
            PyErr_NormalizeException(&kind, &error, &trace);
            if (trace) { PyException_SetTraceback(error, trace); }
        }
        PyObject* said = PyObject_CallFunction(f->slow, "KOO", (unsigned long long)(uintptr_t)x,
                                               y ? y : Py_None, error ? error : Py_None);
        f->broken = f->broken || said == Py_True;
        if (!said) { PyErr_WriteUnraisable(f->slow); }
        Py_XDECREF(said);
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(y);
    PyGILState_Release(state);
}

static crd_model_status function_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    memcpy(self, (const void*)&host->model->user, sizeof(void*));
    return CRD_MODEL_OK;
}

// A function has no state: its outputs follow its inputs.
static crd_model_status function_step(void* self, const crd_model_host* host, double t, double h,
                                      double* reached)
{
    (void)host, (void)t, (void)h, (void)reached;
    const function* f;
    memcpy((void*)&f, self, sizeof f);
    return f && f->broken ? CRD_MODEL_ERROR : CRD_MODEL_OK;
}

static PyType_Slot function_slots[] = {
    {Py_tp_init, (void*)function_init},         {Py_tp_dealloc, (void*)function_dealloc},
    {Py_tp_traverse, (void*)function_traverse}, {Py_tp_clear, (void*)function_clear},
    {Py_tp_new, (void*)PyType_GenericNew},      {0, NULL},
};
static PyType_Spec function_spec = {"cardan._fast.Function", sizeof(function), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, function_slots};

// ---- other units -------------------------------------------------------------------------------

// The methods of an Instance. By ctypes an exception that comes before their first line, as that of
// Ctrl-C does, would be printed and forgotten, and the step taken for made.
enum { INITIALIZE, OUTPUTS, STEP, OUTSIDE, SAVE, RESTORE, FAIL, VERBS };

// The unit's bytes begin with a pointer to this, like those of a Function.
typedef struct unit {
    PyObject_HEAD PyObject* does[VERBS];
    bool broken;
} unit;

static int unit_init(unit* u, PyObject* arguments, PyObject* named)
{
    (void)named;
    PyObject* given[VERBS];
    if (!PyArg_ParseTuple(arguments, "OOOOOOO", &given[0], &given[1], &given[2], &given[3],
                          &given[4], &given[5], &given[6])) {
        return -1;
    }
    for (int i = 0; i < VERBS; i++) {
        keep(&u->does[i], given[i]);
    }
    return 0;
}

static int unit_traverse(unit* u, visitproc visit, void* arg)
{
    Py_VISIT(Py_TYPE(u));
    for (int i = 0; i < VERBS; i++) {
        Py_VISIT(u->does[i]);
    }
    return 0;
}

static int unit_clear(unit* u)
{
    for (int i = 0; i < VERBS; i++) {
        Py_CLEAR(u->does[i]);
    }
    return 0;
}

static void unit_dealloc(unit* u)
{
    PyTypeObject* type = Py_TYPE(u);
    PyObject_GC_UnTrack(u);
    unit_clear(u);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(u);
    Py_DECREF(type);
}

static unit* unit_of(const void* self)
{
    unit* u;
    memcpy(&u, self, sizeof u);
    return u;
}

static unsigned long long variables_of(const void* self)
{
    return (unsigned long long)(uintptr_t)self + sizeof(void*);
}

// What a method gives as a number, 0 if nothing; -1 if an exception has left it, which is told.
static long long unit_ask(unit* u, int verb, PyObject* arguments)
{
    long long found = -1;
    PyObject* said =
        arguments && u->does[verb] ? PyObject_CallObject(u->does[verb], arguments) : NULL;
    if (said) {
        found = said == Py_None ? 0 : PyLong_AsLongLong(said);
    } else {
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        PyErr_NormalizeException(&kind, &error, &trace);
        if (trace) { PyException_SetTraceback(error, trace); }
        u->broken = true;
        PyObject* told = error && u->does[FAIL]
                             ? PyObject_CallFunctionObjArgs(u->does[FAIL], error, NULL)
                             : NULL;
        if (PyErr_Occurred()) { PyErr_WriteUnraisable((PyObject*)u); }
        Py_XDECREF(told);
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(said);
    Py_XDECREF(arguments);
    return found;
}

static crd_model_status unit_initialize(void* self, const crd_model_host* host, double t)
{
    memcpy(self, (const void*)&host->model->user, sizeof(void*));
    unit* u = unit_of(self);
    const PyGILState_STATE state = PyGILState_Ensure();
    u->broken = false;
    const long long st =
        unit_ask(u, INITIALIZE, Py_BuildValue("(KKd)", variables_of(self), 0ULL, t));
    PyGILState_Release(state);
    return st < 0 ? CRD_MODEL_ERROR : (crd_model_status)st;
}

static void unit_outputs(void* self, double t)
{
    unit* u = unit_of(self);
    if (!u) { return; }
    const PyGILState_STATE state = PyGILState_Ensure();
    (void)unit_ask(u, OUTPUTS, Py_BuildValue("(Kd)", variables_of(self), t));
    PyGILState_Release(state);
}

static crd_model_status unit_step(void* self, const crd_model_host* host, double t, double h,
                                  double* reached)
{
    (void)host, (void)reached;
    unit* u = unit_of(self);
    if (!u || u->broken) { return CRD_MODEL_ERROR; }
    const PyGILState_STATE state = PyGILState_Ensure();
    const long long st =
        unit_ask(u, STEP, Py_BuildValue("(KKddK)", variables_of(self), 0ULL, t, h, 0ULL));
    PyGILState_Release(state);
    return st < 0 ? CRD_MODEL_ERROR : (crd_model_status)st;
}

static size_t unit_outside(const void* self)
{
    unit* u = unit_of(self);
    if (!u) { return 0; }
    const PyGILState_STATE state = PyGILState_Ensure();
    const long long size = unit_ask(u, OUTSIDE, Py_BuildValue("(K)", variables_of(self)));
    PyGILState_Release(state);
    return size < 0 ? 0 : (size_t)size;
}

static void unit_save(const void* self, void* into)
{
    unit* u = unit_of(self);
    const PyGILState_STATE state = PyGILState_Ensure();
    (void)unit_ask(u, SAVE,
                   Py_BuildValue("(KK)", variables_of(self), (unsigned long long)(uintptr_t)into));
    PyGILState_Release(state);
}

static crd_model_status unit_restore(void* self, const crd_model_host* host, const void* from,
                                     size_t size)
{
    memcpy(self, (const void*)&host->model->user, sizeof(void*));
    unit* u = unit_of(self);
    const PyGILState_STATE state = PyGILState_Ensure();
    u->broken = false;
    const long long st =
        unit_ask(u, RESTORE,
                 Py_BuildValue("(KKKK)", variables_of(self), 0ULL,
                               (unsigned long long)(uintptr_t)from, (unsigned long long)size));
    PyGILState_Release(state);
    return st < 0 ? CRD_MODEL_ERROR : (crd_model_status)st;
}

static PyType_Slot unit_slots[] = {
    {Py_tp_init, (void*)unit_init},         {Py_tp_dealloc, (void*)unit_dealloc},
    {Py_tp_traverse, (void*)unit_traverse}, {Py_tp_clear, (void*)unit_clear},
    {Py_tp_new, (void*)PyType_GenericNew},  {0, NULL},
};
static PyType_Spec unit_spec = {"cardan._fast.Unit", sizeof(unit), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, unit_slots};

// ---- the module --------------------------------------------------------------------------------

static PyObject* bind(PyObject* module, PyObject* arguments)
{
    (void)module;
    unsigned long long at[6];
    if (!PyArg_ParseTuple(arguments, "KKKKKK", &at[0], &at[1], &at[2], &at[3], &at[4], &at[5])) {
        return NULL;
    }
    memcpy((void*)&library.advance, &at[0], sizeof(void*));
    memcpy((void*)&library.ended, &at[1], sizeof(void*));
    memcpy((void*)&library.time, &at[2], sizeof(void*));
    memcpy((void*)&library.get, &at[3], sizeof(void*));
    memcpy((void*)&library.set, &at[4], sizeof(void*));
    memcpy((void*)&library.cancel, &at[5], sizeof(void*));
#define AT(f) ((unsigned long long)(uintptr_t)(f))
    return Py_BuildValue("KKKKKKKKK", AT(function_initialize), AT(function_outputs),
                         AT(function_step), AT(unit_initialize), AT(unit_outputs), AT(unit_step),
                         AT(unit_outside), AT(unit_save), AT(unit_restore));
#undef AT
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS,
     "crd_master_advance, _ended, _time, _get, _set, _cancel -> initialize, outputs, step of a "
     "Function; the same, outside, save, restore of a Unit"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_fast", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__fast(void);
PyMODINIT_FUNC PyInit__fast(void)
{
    PyObject* module = PyModule_Create(&definition);
    PyObject* types[] = {PyType_FromSpec(&run_spec), PyType_FromSpec(&function_spec),
                         PyType_FromSpec(&unit_spec)};
    const char* const names[] = {"Run", "Function", "Unit"};
    for (int i = 0; i < 3; i++) {
        if (module && (!types[i] || PyModule_AddObject(module, names[i], types[i]) < 0)) {
            Py_CLEAR(module);
        }
    }
    return module;
}
