/// A relay between two sides of a network that delays, loses, doubles, reorders, damages and slows
/// down what passes: a bad link for tests, and for who prepares a bench run at the desk.
///
/// The near side is where the master is, the far side has the slaves. Each slave is a channel: an
/// address at which the relay listens in its place, and the slave's own. Answers go back to who has
/// asked, notifications to who has registered. So that data pass as well, the relay rewrites the
/// network information in requests that configure them: it opens ports of its own and hands on what
/// arrives there. They are closed when the slave has acknowledged STC_deregister, STC_reset or
/// CFG_clear, or a new registration, and when a channel was silent for long.
///
/// Each direction has its own path. Datagrams are lost, doubled and overtake each other; streams
/// stay whole and in order, and a loss costs them the time of a repetition. Event-driven, on the
/// clock of the networks, from a seed. Memory for what is on its way is taken by create; opening
/// ports and connections allocates, nothing else does.
#pragma once
#include "shared/dcp.h"

/// How delays spread around their mean, `delay`.
typedef enum crdi_dcp_jitter {
    CRDI_DCP_JITTER_UNIFORM, ///< delay - jitter .. delay + jitter
    CRDI_DCP_JITTER_NORMAL,  ///< standard deviation `jitter`
    CRDI_DCP_JITTER_GAMMA,   ///< the same with a long tail: shape 2, from delay - 1.41 jitter on
} crdi_dcp_jitter;

enum { CRDI_DCP_CUTS_MAX = 8 };

/// A time in which nothing passes, s since the relay's first packet; `to` INFINITY: for ever.
typedef struct crdi_dcp_cut {
    double from, to;
} crdi_dcp_cut;

/// What one direction does to what passes. All zero: nothing.
typedef struct crdi_dcp_path {
    double delay;  ///< s, mean
    double jitter; ///< s; delays below 0 are 0
    crdi_dcp_jitter distribution;
    double correlation; ///< of a delay with that of the packet before, 0 <= c < 1
    double loss;        ///< part of the packets, outside of bursts
    double burst; ///< part of the packets at which a burst of losses begins (Gilbert, Elliott)
    double burst_length; ///< packets that one lasts in the mean, >= 1; 0: 1
    double burst_loss;   ///< part of the packets in a burst that are lost; 0: all
    double duplicate;    ///< part of the datagrams that come twice
    double reorder;      ///< part of the datagrams that are held back by `hold`
    double hold;         ///< s; 0: 10 ms
    double corrupt;      ///< part of the datagrams of which one byte becomes another
    bool in_order;       ///< datagrams do not overtake each other, but for those held back
    double rate;         ///< bytes/s with the headers of IP and UDP or TCP; 0: no limit
    size_t queue;        ///< bytes of datagrams that may wait for their turn; 0: 64 KiB
    double repeat;       ///< s that a repetition costs a stream; 0: a round trip, at least 1 ms
    /// A recording of latencies instead of delay, jitter and their like: from its time on, and over
    /// again, each row counts until the next. NaN: lost. Borrowed; times begin with the first row
    /// and rise.
    const double *trace_time, *trace_delay;
    int64_t trace_count;
    /// Datagrams that come in a cut are gone; those on their way arrive. Streams wait for its end.
    crdi_dcp_cut cuts[CRDI_DCP_CUTS_MAX];
    int cut_count;
} crdi_dcp_path;

typedef struct crdi_dcp_relay_options {
    crdi_dcp_path there, back; ///< from near to far, and from far to near
    uint64_t seed;
    bool control_only; ///< network information stays as it is: data go past the relay
    bool raw;          ///< what passes is not DCP: nothing is looked into; streams in pieces as
                       ///< they come
    uint32_t near_ip;  ///< own address on the near side; 0: that of the channel
    uint32_t far_ip;   ///< own address on the far side; 0: loopback
    uint16_t port_from, port_to; ///< for slaves that have the relay's own address and so need other
                                 ///< ports for data than the master says; 0: any that is free
    size_t memory;               ///< bytes that may be on their way; default 16 MiB
    int max_channels;            ///< default 64
    int max_maps;                ///< ports for data that may be open; default 1024
    double idle;                 ///< s of silence until a channel's ports are closed; default 3600
} crdi_dcp_relay_options;

/// What became of PDUs in one direction. Exact:
///     received + duplicated =
///         sent + lost + cut + queue_full + no_room + nowhere + unsent + waiting
typedef struct crdi_dcp_path_counts {
    int64_t received, bytes_received;
    int64_t duplicated;
    int64_t sent, bytes_sent;
    int64_t lost;       ///< datagrams, by chance or by the recording
    int64_t cut;        ///< datagrams that came in a cut
    int64_t queue_full; ///< datagrams beyond `queue`
    int64_t no_room;    ///< beyond `memory`; a stream is closed then
    int64_t nowhere;    ///< nobody is known who would want it, or it came from where it may not
    int64_t unsent;     ///< the network did not take it
    int64_t waiting;    ///< on their way now
    int64_t corrupted, held;
    int64_t reordered; ///< datagrams that left behind one that had come later
    int64_t repeated;  ///< losses of streams
    int64_t bursts;    ///< that have begun
    double late;       ///< s: the most that one left behind its time, as advance came late
} crdi_dcp_path_counts;

typedef struct crdi_dcp_relay_counts {
    crdi_dcp_path_counts there, back;
    int64_t rewritten;      ///< network information
    int64_t outside;        ///< network information left alone: an address that is not the relay's
    int64_t unmapped;       ///< ports that could not be opened; data go past the relay or get lost
    int64_t opened, closed; ///< ports for data
    int64_t strangers;      ///< requests from elsewhere than the master's address, part of nowhere
} crdi_dcp_relay_counts;

typedef struct crdi_dcp_relay crdi_dcp_relay; ///< opaque

crdi_dcp_relay_options crdi_dcp_relay_defaults(void);
/// Nets are borrowed and belong to the relay as far as their packets go; they may be the same one.
/// CRD_E_RANGE: what makes no sense; CRD_E_MEMORY.
crd_status crdi_dcp_relay_create(crd_context* ctx, crd_dcp_net* near, crd_dcp_net* far,
                                 const crdi_dcp_relay_options* opt, crdi_dcp_relay** out);
/// Closes the ports for data; those of the channels stay the nets'.
void crdi_dcp_relay_destroy(crdi_dcp_relay* r);
/// A slave: the relay listens at `at` (port 0 chooses one, which is then in `*at`) for what is
/// meant for `to`. Both have the same transport.
crd_status crdi_dcp_relay_add(crdi_dcp_relay* r, crd_dcp_address* at, const crd_dcp_address* to);
/// When crdi_dcp_relay_poll has something to do; INFINITY: only after a packet.
double crdi_dcp_relay_next(const crdi_dcp_relay* r);
/// Takes what is there from both nets and lets leave what is due, by the clock of the near net.
/// true: there may be more, come again before waiting.
bool crdi_dcp_relay_poll(crdi_dcp_relay* r);
crdi_dcp_relay_counts crdi_dcp_relay_get_counts(const crdi_dcp_relay* r);
