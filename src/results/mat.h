// libmatio, for the writer and the reader of MATLAB files.
#pragma once

/// HDF5 below files of version 7.3 is one for the process, does not know threads, and prints what
/// goes wrong: every call of libmatio stands between these two.
void crdi_matio_begin(void);
void crdi_matio_end(void);
