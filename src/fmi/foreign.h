// What an FMU's code can do to the process around it, and what is done about it: names that bind to
// the wrong library, floating-point control that it leaves changed, messages whose owner it names.
#pragma once
#include "cardan/fmi.h"

/// Loads a library so that its own symbols, and those of the libraries it brings, come before ours:
/// an FMU with its own SUNDIALS or BLAS gets that one, and ours is not touched. An FMU that brings
/// its own malloc is loaded without that, as what the C library allocates for it would come from
/// another heap than the one it frees to; so is every FMU in a process whose malloc is not the C
/// library's (a preloaded one, sanitizers). NULL: dlerror() says why. `*plain`: all that it
/// remembers is its own memory. Nothing of its own runs when it is loaded or unloaded or at the end
/// of the process, it has no variables of threads, and needs and loads no library but the C
/// library.
void* crdi_fmi_library_open(const char* path, bool* plain);

/// All memory that a library may write to, as it is now; free() frees it. NULL: there is too much
/// of it, or it cannot be found.
typedef struct crdi_fmi_memory crdi_fmi_memory;
crdi_fmi_memory* crdi_fmi_memory_copy(void* handle);
bool crdi_fmi_memory_is_same(const crdi_fmi_memory* m); ///< as then, bit by bit
/// Whether a library of this real path, or of one below it, is loaded.
bool crdi_fmi_is_loaded(const char* path);

// Floating-point control: rounding to nearest, subnormal numbers, and the traps that were in force
// when the first of the living instances was made; where that was under another rounding or with
// flush to zero, every call is looked at in full. Reading MXCSR takes 3.4 ns on the machine where
// this was measured; the x87 control word, which the C library's functions change along, and a
// subtraction that depends on flush to zero 0.75 ns, which is what a step of a row of units pays.
extern unsigned crdi_float_control;                 // the control word when all is well
extern const volatile double crdi_float_numbers[5]; // 1, 2^-54, 1.5 * 2^-53, 2^-1022, 1.5 * 2^-1022

static inline unsigned crdi_float_read_control(void)
{
    unsigned short control = 0;
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("fnstcw %0" : "=m"(control));
#endif
    return control;
}

/// What is likely to be changed, for units that follow each other in a row: all but a rounding mode
/// that was set in MXCSR alone. The control word first: with traps the subtraction would be
/// trapped.
static inline bool crdi_float_seems_normal(void)
{
    if (__builtin_expect(crdi_float_read_control() != crdi_float_control, 0)) { return false; }
    return crdi_float_numbers[4] - crdi_float_numbers[3] != 0; // 2^-1023, which is subnormal
}

static inline bool crdi_float_is_normal(void)
{
    if (!crdi_float_seems_normal()) { return false; }
    const volatile double* k = crdi_float_numbers;
    const double more = k[0] + k[2];  // to nearest 1 + 2^-52
    return more - (k[0] + k[1]) != 0; // to nearest 1; in other modes both are the same
}

void crdi_float_learn(void); ///< before the first instance
/// Looks at all of it and puts it back as it was, once with a warning that names instance and call.
void crdi_float_check(crd_fmi* i);

/// The instance whose function this thread called last: it is the one that speaks if what the FMU
/// gives as its environment is nobody.
extern _Thread_local crd_fmi* crdi_fmi_calling __attribute__((tls_model("initial-exec")));

/// Instances that may speak. The environment that an FMU is given is the address of its instance,
/// and what it gives back is looked up and never followed.
void crdi_fmi_speaker_add(crd_fmi* i);
void crdi_fmi_speaker_remove(crd_fmi* i); ///< waits for a message that is being worded, 1 s at most
/// The instance of an environment, else the one that this thread called; NULL: nobody lives there.
/// It stays until crdi_fmi_speaker_done.
crd_fmi* crdi_fmi_speaker(void* environment);
void crdi_fmi_speaker_done(crd_fmi* i);
