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
    PyObject *fail, *get, *set; // Run's: says what went wrong; for names that are not known yet
    PyObject* owner;            // weak: the Run, which stays while somebody is inside
    bool failed;                // a unit in Python has
    bool busy; // somebody is inside: one at a time, the interpreter's lock keeps it
} run;

enum { BUSY = 1 }; // of Run._check

static int run_init(run* r, PyObject* arguments, PyObject* named)
{
    static char* words[] = {"master", "fail", "get", "set", "owner", NULL};
    unsigned long long at = 0;
    PyObject *fail, *get, *set, *owner;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "KOOOO", words, &at, &fail, &get, &set,
                                     &owner)) {
        return -1;
    }
    Py_XDECREF(r->handles);
    r->handles = PyDict_New();
    r->master = (crd_master*)(uintptr_t)at;
    keep(&r->fail, fail);
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
    Py_VISIT(r->get);
    Py_VISIT(r->set);
    Py_VISIT(r->owner);
    return 0;
}

static int run_clear(run* r)
{
    Py_CLEAR(r->handles);
    Py_CLEAR(r->fail);
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

static PyObject* run_advance(run* r, PyObject* arguments)
{
    long long steps = 1;
    int status = CRD_E_STATE, end = 0;
    if (!PyArg_ParseTuple(arguments, "|L", &steps) || !run_enter(r)) { return NULL; }
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

static PyObject* run_get(run* r, PyObject* name)
{
    double x = 0;
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

static PyObject* run_set(run* r, PyObject* arguments)
{
    PyObject *name, *value;
    if (!PyArg_ParseTuple(arguments, "OO:set", &name, &value)) { return NULL; }
    const int handle = find(r, name);
    if (handle == -2) { PyErr_Clear(); }
    if (handle < 0 || !r->master) {
        return r->set ? PyObject_CallFunctionObjArgs(r->set, name, value, NULL) : NULL;
    }
    const double x = PyFloat_AsDouble(value); // which may be code that closes the run
    if (x == -1 && PyErr_Occurred()) { return NULL; }
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
    {"advance", (PyCFunction)(void*)run_advance, METH_VARARGS, NULL},
    {"time", (PyCFunction)(void*)run_time, METH_NOARGS, NULL},
    {"get", (PyCFunction)(void*)run_get, METH_O, NULL},
    {"set", (PyCFunction)(void*)run_set, METH_VARARGS, NULL},
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
    return Py_BuildValue("KKK", (unsigned long long)(uintptr_t)function_initialize,
                         (unsigned long long)(uintptr_t)function_outputs,
                         (unsigned long long)(uintptr_t)function_step);
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS,
     "crd_master_advance, _ended, _time, _get, _set, _cancel -> initialize, outputs, step of a "
     "Function"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_fast", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__fast(void);
PyMODINIT_FUNC PyInit__fast(void)
{
    PyObject* module = PyModule_Create(&definition);
    PyObject* types[] = {PyType_FromSpec(&run_spec), PyType_FromSpec(&function_spec)};
    const char* const names[] = {"Run", "Function"};
    for (int i = 0; i < 2; i++) {
        if (module && (!types[i] || PyModule_AddObject(module, names[i], types[i]) < 0)) {
            Py_CLEAR(module);
        }
    }
    return module;
}
