// Which output an input could get its value from, judged by names and units of measure.
//
// A name is a list of tokens: "engineTorque_ref[2]" is engine torque ref 2. Two tokens are the same
// if they are written alike or are two words for one quantity: tau and torque, if the unit of
// measure allows it. What remains of one name may be the name of the partner's unit: engine.torque
// -> controller.engine_torque. Points are summed up, the best output wins, and how far ahead of the
// second it is says how sure that is.
#include "cardan/system.h"
#include "shared/base.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_TOKENS = 12,
    MOST_LETTERS = 23,
    MOST_ROWS = 32,
    CROWD = 256, // ports that share a token: more of them say nothing
};

// Words that mean the same, and the unit of measure that says so. Words of one or two letters mean
// it only with that unit; rows without a unit are about things.
static const struct {
    const char *measure, *words;
} synonyms[] = {
    {"N.m", " torque tau trq tq moment mom m t "},
    {"rad/s", " speed omega w om n velocity rpm rev "},
    {"m/s", " velocity speed vel v "},
    {"N", " force f frc "},
    {"m", " displacement position pos distance dist travel x s z "},
    {"rad", " angle phi theta alpha position pos ang "},
    {"V", " voltage volt u v emf e "},
    {"A", " current curr i "},
    {"K", " temperature temp t theta "},
    {"Pa", " pressure press p "},
    {"W", " power pow p "},
    {"m/s2", " acceleration accel acc a "},
    {"rad/s2", " acceleration accel acc alpha "},
    {"kg/s", " flow massflow mdot "},
    {"m3/s", " flow q vdot "},
    {"J", " energy work e "},
    {"", " machine motor em "},
    {"", " engine ice "},
    {"", " on run running enable enabled active "},
    {"", " pedal throttle accelerator "},
};
enum { ROWS = sizeof synonyms / sizeof *synonyms };
_Static_assert((int)ROWS <= (int)MOST_ROWS, "a bit per row");

// What somebody wants from a unit, how far something may go, and words that only say on which side
// a variable is.
static const char wishes[] =
    " ref reference cmd command set setpoint sp target desired des demand request req ";
static const char bounds[] = " max min limit lim upper lower ";
static const char sides[] =
    " in input out output y u value val signal sig act actual meas measured calc ";

typedef enum token_role { T_NAME, T_NUMBER, T_WISH, T_BOUND, T_SIDE } token_role;

typedef struct token {
    char text[MOST_LETTERS + 1];
    uint8_t role;
    bool quantity; // a word for the quantity that the unit of measure names
    uint32_t rows; // of synonyms, a bit each
} token;

typedef struct words {
    const token* items;
    int count;
    bool wish;    // one of them is
    bool nothing; // only sides and numbers: y, u1
    bool number;  // one of them is
} words;

typedef struct matcher {
    crd_arena* arena;
    const crd_port_unit* units;
    const crd_endpoint* ports;
    int unit_count, port_count;
    words *of_unit, *of_port;
    crd_dimension measures[ROWS];
    // Outputs by key: "=tau ref", "torque", "#3" (row), "@1,2,-2..." (dimension), "unit engine"
    crd_map keys;
    crd_map wished; // "3 speed": unit 3 has an input speed_ref
    struct link {
        int port, next;
    } * links; // lists of ports
    int* heads;
    int *crowds, list_count;
    size_t link_count, link_capacity, head_capacity, crowd_capacity;
    int *stamp, *found;          // candidates of one input (port_count)
    bool* used;                  // outputs that have an input (port_count)
    int* third;                  // of an input: a unit that its name has in it, -1 (port_count)
    int *inputs_of, *outputs_of; // (unit_count)
    double* best_of;             // the most points that an output has anywhere (port_count)
} matcher;

const char* crd_sureness_name(crd_sureness s)
{
    static const char* const names[] = {"doubtful", "likely", "sure"};
    return names[s];
}

// ---- tokens ------------------------------------------------------------------------------------

static bool is_word_of(const char* list, const char* word)
{
    char padded[MOST_LETTERS + 3];
    snprintf(padded, sizeof padded, " %s ", word);
    return strstr(list, padded) != NULL;
}

static void classify(const matcher* m, token* t, const crd_endpoint* port)
{
    t->role = isdigit((unsigned char)t->text[0]) ? T_NUMBER
              : is_word_of(wishes, t->text)      ? T_WISH
              : is_word_of(bounds, t->text)      ? T_BOUND
              : is_word_of(sides, t->text)       ? T_SIDE
                                                 : T_NAME;
    const bool known = port && port->has_dimension;
    for (int i = 0; i < ROWS; i++) {
        const bool thing = !synonyms[i].measure[0];
        if (!is_word_of(synonyms[i].words, t->text)) { continue; }
        if (thing || (known && crd_dimension_equal(&port->dimension, &m->measures[i]))) {
            t->rows |= UINT32_C(1) << i;
            t->quantity = t->quantity || !thing;
        } else if (!known && strlen(t->text) > 2) {
            t->rows |= UINT32_C(1) << i;
        }
    }
    if (t->quantity) { t->role = T_NAME; } // u in V is a voltage, not a side
}

typedef enum letter { L_NONE, L_LOWER, L_UPPER, L_DIGIT } letter;

static letter letter_of(unsigned char c)
{
    return isdigit(c) ? L_DIGIT : isupper(c) ? L_UPPER : isalpha(c) || c >= 0x80 ? L_LOWER : L_NONE;
}

// Between these a token ends: aB, a1, 1a, ABc before the B.
static bool is_edge(const char* name, size_t i)
{
    const letter a = letter_of((unsigned char)name[i - 1]), b = letter_of((unsigned char)name[i]);
    if (a == b) { return a == L_UPPER && letter_of((unsigned char)name[i + 1]) == L_LOWER; }
    return !(a == L_UPPER && b == L_LOWER);
}

static crd_status split_name(const matcher* m, const char* name, const crd_endpoint* port,
                             words* out)
{
    token list[MOST_TOKENS] = {0};
    int count = 0;
    size_t length = 0;
    for (size_t i = 0; count < MOST_TOKENS; i++) {
        const bool ends = length > 0 && (!name[i] || is_edge(name, i));
        if (ends) {
            count++;
            length = 0;
        }
        if (!name[i] || count == MOST_TOKENS) { break; }
        if (letter_of((unsigned char)name[i]) != L_NONE && length < MOST_LETTERS) {
            list[count].text[length++] = (char)tolower((unsigned char)name[i]);
        }
    }
    token* kept = crdi_arena_new(m->arena, (size_t)(count ? count : 1), sizeof *kept);
    if (!kept) { return CRD_E_MEMORY; }
    *out = (words){.items = kept, .count = count, .nothing = true};
    for (int i = 0; i < count; i++) {
        kept[i] = list[i];
        classify(m, &kept[i], port);
        out->wish = out->wish || kept[i].role == T_WISH;
        out->number = out->number || kept[i].role == T_NUMBER;
        out->nothing = out->nothing && (kept[i].role == T_SIDE || kept[i].role == T_NUMBER);
    }
    return CRD_OK;
}

static bool same_token(const token* a, const token* b)
{
    return strcmp(a->text, b->text) == 0 || (a->rows & b->rows) != 0;
}

static bool has_token(const words* w, const token* t)
{
    for (int i = 0; i < w->count; i++) {
        if (same_token(&w->items[i], t)) { return true; }
    }
    return false;
}

static bool has_text(const words* w, const token* t)
{
    for (int i = 0; i < w->count; i++) {
        if (strcmp(w->items[i].text, t->text) == 0) { return true; }
    }
    return false;
}

static bool same_words(const words* a, const words* b)
{
    if (a->count != b->count) { return false; }
    for (int i = 0; i < a->count; i++) {
        if (strcmp(a->items[i].text, b->items[i].text) != 0) { return false; }
    }
    return true;
}

// ---- lists of outputs by what they are called --------------------------------------------------

static crd_status list_under(matcher* m, const char* key, int port)
{
    int list = crdi_map_find(&m->keys, key);
    if (list < 0) {
        const size_t need = (size_t)m->list_count + 1;
        int* heads = crdi_grow(m->arena->ctx, m->heads, &m->head_capacity, need, sizeof *heads);
        if (!heads) { return CRD_E_MEMORY; }
        m->heads = heads;
        int* crowds = crdi_grow(m->arena->ctx, m->crowds, &m->crowd_capacity, need, sizeof *crowds);
        if (!crowds) { return CRD_E_MEMORY; }
        m->crowds = crowds;
        const char* kept = crdi_arena_text(m->arena, key, strlen(key));
        if (!kept) { return CRD_E_MEMORY; }
        const crd_status st = crdi_map_add(&m->keys, kept, m->list_count, NULL);
        if (st < 0) { return st; }
        list = m->list_count++;
        m->heads[list] = -1;
        m->crowds[list] = 0;
    }
    struct link* links =
        crdi_grow(m->arena->ctx, m->links, &m->link_capacity, m->link_count + 1, sizeof *links);
    if (!links) { return CRD_E_MEMORY; }
    m->links = links;
    m->links[m->link_count] = (struct link){port, m->heads[list]};
    m->heads[list] = (int)m->link_count++;
    m->crowds[list]++;
    return CRD_OK;
}

enum { KEY_ROOM = MOST_TOKENS * (MOST_LETTERS + 1) + 8 };

// The keys of a port, one after the other; false behind the last.
static bool key_of(const matcher* m, int port, int n, char key[KEY_ROOM])
{
    const crd_endpoint* p = &m->ports[port];
    const words* w = &m->of_port[port];
    if (n == 0) {
        size_t at = 0;
        key[at++] = '=';
        for (int i = 0; i < w->count; i++) {
            at += (size_t)snprintf(key + at, KEY_ROOM - at, "%s ", w->items[i].text);
        }
        return true;
    }
    if (n == 1) {
        const crd_dimension* d = &p->dimension;
        snprintf(key, KEY_ROOM, p->has_dimension ? "@%d,%d,%d,%d,%d,%d,%d,%d" : "@", d->kg, d->m,
                 d->s, d->A, d->K, d->mol, d->cd, d->rad);
        return true;
    }
    n -= 2;
    if (n < w->count) {
        snprintf(key, KEY_ROOM, "%s", w->items[n].text);
        return true;
    }
    n -= w->count;
    uint32_t rows = 0;
    for (int i = 0; i < w->count; i++) {
        rows |= w->items[i].rows;
    }
    for (int i = 0; i < ROWS; i++) {
        if (rows >> i & 1 && n-- == 0) {
            snprintf(key, KEY_ROOM, "#%d", i);
            return true;
        }
    }
    return false;
}

static crd_status list_outputs(matcher* m)
{
    char key[KEY_ROOM];
    for (int p = 0; p < m->port_count; p++) {
        if (m->ports[p].causality != CRD_OUTPUT) { continue; }
        for (int n = 0; key_of(m, p, n, key); n++) {
            const crd_status st = list_under(m, key, p);
            if (st < 0) { return st; }
        }
        const words* u = &m->of_unit[m->ports[p].unit];
        for (int i = 0; i < u->count; i++) {
            snprintf(key, sizeof key, "unit %s", u->items[i].text);
            const crd_status st = list_under(m, key, p);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

static int take_list(matcher* m, const char* key, int input, int count)
{
    const int list = crdi_map_find(&m->keys, key);
    if (list < 0 || m->crowds[list] > CROWD) { return count; }
    for (int l = m->heads[list]; l >= 0; l = m->links[l].next) {
        const int port = m->links[l].port;
        if (m->stamp[port] == input + 1) { continue; }
        m->stamp[port] = input + 1;
        m->found[count++] = port;
    }
    return count;
}

// Outputs that share something with an input.
static int candidates_of(matcher* m, int input)
{
    char key[KEY_ROOM];
    int count = 0;
    for (int n = 0; key_of(m, input, n, key); n++) {
        count = take_list(m, key, input, count);
    }
    for (int i = 0; i < m->of_port[input].count; i++) { // ahead.speed -> driver.ahead
        snprintf(key, sizeof key, "unit %s", m->of_port[input].items[i].text);
        count = take_list(m, key, input, count);
    }
    return count;
}

// ---- points ------------------------------------------------------------------------------------

typedef struct judged {
    int from;
    double points;
    bool same;     // the names are equal
    bool written;  // a token is written alike
    bool synonym;  // or means the same
    bool partner;  // the rest is the partner's name
    bool nickname; // or a word that may mean it
    bool stranger; // the input's name has that of a third unit in it
    bool asks;     // a wish for an input that takes what is
    bool measured; // both have a unit of measure, and it fits
    bool rest;     // something remains that nothing explains
    bool digits;   // x1 and x2
    bool lone;     // two units, and this is all that they have
} judged;

// What remains of one name: the partner's name, a word for the quantity, or something else.
static void judge_rest(const words* w, uint32_t left, const words* partner, judged* j, bool* number)
{
    for (int i = 0; i < w->count; i++) {
        const token* t = &w->items[i];
        if (!(left >> i & 1)) { continue; }
        if (t->role == T_NUMBER) {
            *number = true;
        } else if (t->role == T_WISH || t->role == T_SIDE) {
            j->points -= 0.25;
        } else if (t->role == T_BOUND) {
            j->points -= 3;
            j->rest = true;
        } else if (has_token(partner, t)) {
            j->partner = true;
            j->nickname = j->nickname || !has_text(partner, t);
        } else if (t->quantity) {
            j->points -= 0.5;
        } else {
            j->points -= 1.5;
            j->rest = true;
        }
    }
}

static void judge_names(const words* from, const words* to, const words* from_unit,
                        const words* to_unit, judged* j)
{
    uint32_t left_from = (UINT32_C(1) << from->count) - 1, left_to = (UINT32_C(1) << to->count) - 1;
    for (int pass = 0; pass < 2; pass++) { // written alike first
        for (int a = 0; a < from->count; a++) {
            for (int b = 0; b < to->count; b++) {
                const token *x = &from->items[a], *y = &to->items[b];
                const bool alike = strcmp(x->text, y->text) == 0;
                if (!(left_from >> a & 1) || !(left_to >> b & 1)) { continue; }
                if (pass == 0 ? !alike : !(x->rows & y->rows)) { continue; }
                left_from &= ~(UINT32_C(1) << a);
                left_to &= ~(UINT32_C(1) << b);
                const bool says = x->role == T_NAME;
                j->written = j->written || (pass == 0 && says);
                j->synonym = j->synonym || (pass == 1 && says);
            }
        }
    }
    bool digits_from = false, digits_to = false;
    judge_rest(from, left_from, to_unit, j, &digits_from);
    judge_rest(to, left_to, from_unit, j, &digits_to);
    j->digits = digits_from && digits_to;
    j->points -= j->digits ? 3 : digits_from || digits_to ? 1 : 0;
}

// speed of a unit that has speed_ref is the answer to it, and seldom anybody else's reference.
static crd_status list_wishes(matcher* m)
{
    for (int p = 0; p < m->port_count; p++) {
        const words* w = &m->of_port[p];
        if (m->ports[p].causality != CRD_INPUT || !w->wish) { continue; }
        const char* key = crdi_arena_format(m->arena, "%d %s", m->ports[p].unit, w->items[0].text);
        const crd_status st = key ? crdi_map_add(&m->wished, key, p, NULL) : CRD_E_MEMORY;
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// vehicle.oil is about the unit oil, whoever else has something called oil.
static crd_status find_thirds(matcher* m)
{
    crd_map map;
    crd_status st = CRD_OK;
    crdi_map_init(&map, m->arena->ctx);
    for (int u = 0; u < m->unit_count && st >= 0; u++) {
        if (m->of_unit[u].count == 1) {
            st = crdi_map_add(&map, m->of_unit[u].items[0].text, u, NULL);
        }
    }
    for (int p = 0; p < m->port_count && st >= 0; p++) {
        m->third[p] = -1;
        for (int i = 0; i < m->of_port[p].count; i++) {
            const int u = crdi_map_find(&map, m->of_port[p].items[i].text);
            if (u >= 0 && u != m->ports[p].unit) { m->third[p] = u; }
        }
    }
    crdi_map_clear(&map);
    return st;
}

static bool is_answer(const matcher* m, int from)
{
    char key[MOST_LETTERS + 16];
    const words* w = &m->of_port[from];
    snprintf(key, sizeof key, "%d %s", m->ports[from].unit, w->count ? w->items[0].text : "");
    return crdi_map_find(&m->wished, key) >= 0;
}

static bool is_plain(const crd_endpoint* p) // a ratio says little
{
    const crd_dimension* d = &p->dimension;
    return !d->kg && !d->m && !d->s && !d->A && !d->K && !d->mol && !d->cd && !d->rad;
}

static bool can_connect(const crd_endpoint* from, const crd_endpoint* to)
{
    const bool bytes =
        crd_type_kind(from->type) == CRD_BYTES || crd_type_kind(to->type) == CRD_BYTES;
    if (from->type == CRD_CLOCK || to->type == CRD_CLOCK || (bytes && from->type != to->type)) {
        return false;
    }
    if (from->size != to->size) { return false; }
    return !(from->has_dimension && to->has_dimension) ||
           crd_dimension_equal(&from->dimension, &to->dimension);
}

// false: not at all.
static bool judge(const matcher* m, int from, int to, bool again, judged* j)
{
    const crd_endpoint *a = &m->ports[from], *b = &m->ports[to];
    *j = (judged){.from = from};
    if (a->unit == b->unit || !can_connect(a, b)) { return false; }
    const words *wa = &m->of_port[from], *wb = &m->of_port[to];
    const words *ua = &m->of_unit[a->unit], *ub = &m->of_unit[b->unit];
    j->same = same_words(wa, wb) && (!wa->nothing || wa->number); // y2 and y2, not y and y
    // the only output of a unit is called y: its name is that of the unit
    judge_names(wa->nothing ? ua : wa, wb->nothing ? ub : wb, ua, ub, j);
    j->partner = j->partner || (wa->nothing && j->written);
    j->measured = a->has_dimension && b->has_dimension && !is_plain(a);
    const bool alike = j->same || j->written || j->synonym;
    j->lone = !alike && !j->partner && wa->nothing && wb->nothing && m->unit_count == 2 &&
              m->outputs_of[a->unit] == 1 && m->inputs_of[b->unit] == 1;
    if (!alike && !j->partner && !j->measured && !j->lone) { return false; }
    if (j->lone) { j->points = 0; } // the units' names say nothing about it
    j->points += j->same ? 8 : j->written ? 6 : j->synonym || j->partner ? 5 : 2;
    j->points += alike && j->partner ? (j->nickname ? 2 : 3) : 0;
    j->points += j->measured ? 2 : a->has_dimension != b->has_dimension ? -0.5 : 0;
    j->stranger = m->third[to] >= 0 && m->third[to] != a->unit && !j->partner;
    j->asks = wa->wish && !wb->wish;
    j->points -= (j->stranger ? 2 : 0) + (j->asks ? 2 : 0);
    const bool real = crd_type_kind(a->type) == CRD_REAL;
    if (real != (crd_type_kind(b->type) == CRD_REAL)) { j->points -= 2; }
    // a reference is what a test case says; everything else comes from models, if they have it
    const bool source = m->units[a->unit].source;
    j->points += source == wb->wish ? 0.75 : 0;
    if (wb->wish && !source && is_answer(m, from)) { j->points -= 2; }
    if (again && !m->used[from]) { j->points += 1; }
    return true;
}

// ---- proposals ---------------------------------------------------------------------------------

static const char* why_text(const matcher* m, const judged* j, const judged* second, int to,
                            bool sure)
{
    const crd_endpoint *a = &m->ports[j->from], *b = &m->ports[to];
    const char* names = j->same      ? "same name"
                        : j->written ? "names alike"
                        : j->synonym ? "names mean the same"
                        : j->partner ? "named after its partner"
                        : j->lone    ? "nothing but an output and an input that are left"
                                     : "only the unit of measure fits";
    const char* units = "";
    if (j->measured && strcmp(a->measure, b->measure) == 0) {
        units = crdi_arena_format(m->arena, ", both in %s", a->measure);
    } else if (j->measured) {
        units = crdi_arena_format(m->arena, ", %s becomes %s", a->measure, b->measure);
    } else if (a->has_dimension != b->has_dimension) {
        units = crdi_arena_format(m->arena, ", %s without a unit of measure",
                                  a->has_dimension ? "input" : "output");
    }
    const char* other = "";
    if (!sure && second->from >= 0 && second->points > j->points - 2) {
        const crd_endpoint* c = &m->ports[second->from];
        other = crdi_arena_format(m->arena, "; or %s.%s", m->units[c->unit].name, c->name);
    }
    return units && other ? crdi_arena_format(m->arena, "%s%s%s", names, units, other) : NULL;
}

// The limits that divide sure, likely and doubtful.
static crd_sureness sureness(const matcher* m, const judged* j, const judged* second)
{
    const double margin = second->from < 0 ? INFINITY : j->points - second->points;
    const bool named = j->same || j->written || j->synonym || j->partner;
    const bool better_elsewhere = m->best_of[j->from] >= j->points + 2;
    if (j->lone && !j->measured) { return CRD_DOUBTFUL; }
    if (!named) { return margin >= 1 && !m->used[j->from] ? CRD_LIKELY : CRD_DOUBTFUL; }
    const bool odd = j->rest || j->digits || j->nickname || j->stranger || j->asks;
    if (j->points >= 7 && margin >= 1 && !odd && !better_elsewhere) { return CRD_SURE; }
    return j->points >= 4.5 && margin >= 0.5 && !(better_elsewhere && j->rest) ? CRD_LIKELY
                                                                               : CRD_DOUBTFUL;
}

// The best and the second output for an input.
static void rank(matcher* m, int to, bool again, judged* best, judged* second)
{
    *best = *second = (judged){.from = -1, .points = 1.5};
    const int count = candidates_of(m, to);
    for (int i = 0; i < count; i++) {
        judged j;
        if (!judge(m, m->found[i], to, again, &j)) { continue; }
        if (m->best_of[j.from] < j.points) { m->best_of[j.from] = j.points; }
        // equal points: the order of writing decides, lists are from the last to the first
        const bool ahead = j.points > best->points ||
                           (j.points == best->points && best->from >= 0 && j.from < best->from);
        if (ahead) {
            *second = *best;
            *best = j;
        } else if (j.points > second->points || (second->from < 0 && j.points >= 1.5)) {
            *second = j;
        }
    }
    for (int i = 0; i < count; i++) {
        m->stamp[m->found[i]] = 0; // the next pass asks again
    }
}

// Twice: what names say first, and then what is left for what is left.
static crd_status propose_all(matcher* m, crd_proposal* list, int* count)
{
    enum { STRONG = 5 };
    judged best, second;
    for (int to = 0; to < m->port_count; to++) {
        if (m->ports[to].causality != CRD_INPUT || m->ports[to].taken) { continue; }
        rank(m, to, false, &best, &second);
        if (best.from >= 0 && best.points >= STRONG) { m->used[best.from] = true; }
    }
    for (int to = 0; to < m->port_count; to++) {
        if (m->ports[to].causality != CRD_INPUT || m->ports[to].taken) { continue; }
        rank(m, to, false, &best, &second);
        if (best.from < 0 || best.points < STRONG) { rank(m, to, true, &best, &second); }
        if (best.from < 0) { continue; }
        const crd_sureness sure = sureness(m, &best, &second);
        const char* why = why_text(m, &best, &second, to, sure == CRD_SURE);
        if (!why) { return CRD_E_MEMORY; }
        list[(*count)++] = (crd_proposal){best.from, to, sure, why};
        m->used[best.from] = true;
    }
    return CRD_OK;
}

static crd_status begin(matcher* m)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)m->port_count + 1;
    m->of_unit = crdi_arena_new(m->arena, (size_t)m->unit_count + 1, sizeof *m->of_unit);
    m->of_port = crdi_arena_new(m->arena, n, sizeof *m->of_port);
    m->stamp = crdi_arena_new(m->arena, n, sizeof *m->stamp);
    m->found = crdi_arena_new(m->arena, n, sizeof *m->found);
    m->used = crdi_arena_new(m->arena, n, sizeof *m->used);
    m->best_of = crdi_arena_new(m->arena, n, sizeof *m->best_of);
    m->third = crdi_arena_new(m->arena, n, sizeof *m->third);
    m->inputs_of = crdi_arena_new(m->arena, (size_t)m->unit_count + 1, sizeof *m->inputs_of);
    m->outputs_of = crdi_arena_new(m->arena, (size_t)m->unit_count + 1, sizeof *m->outputs_of);
    if (!m->inputs_of || !m->outputs_of) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->port_count; i++) {
        const crd_endpoint* p = &m->ports[i];
        m->inputs_of[p->unit] += p->causality == CRD_INPUT;
        m->outputs_of[p->unit] += p->causality == CRD_OUTPUT;
    }
    if (!m->third || !m->of_unit || !m->of_port || !m->stamp || !m->found || !m->used ||
        !m->best_of) {
        return CRD_E_MEMORY;
    }
    for (int i = 0; i < ROWS; i++) {
        (void)crd_dimension_parse(synonyms[i].measure, &m->measures[i]);
    }
    for (int i = 0; i < m->unit_count; i++) {
        CRD_TRY(split_name(m, m->units[i].name, NULL, &m->of_unit[i]));
    }
    for (int i = 0; i < m->port_count; i++) {
        CRD_TRY(split_name(m, m->ports[i].name, &m->ports[i], &m->of_port[i]));
    }
    CRD_TRY(list_outputs(m));
    CRD_TRY(list_wishes(m));
    CRD_TRY(find_thirds(m));
fail:
    return st;
}

crd_status crd_propose(crd_arena* arena, const crd_port_unit* units, int unit_count,
                       const crd_endpoint* ports, int port_count, const crd_proposal** out,
                       int* count)
{
    crd_status st = CRD_OK;
    matcher m = {.arena = arena,
                 .units = units,
                 .ports = ports,
                 .unit_count = unit_count,
                 .port_count = port_count};
    crdi_map_init(&m.keys, arena->ctx);
    crdi_map_init(&m.wished, arena->ctx);
    *count = 0;
    crd_proposal* list = crdi_arena_new(arena, (size_t)port_count + 1, sizeof *list);
    if (!list) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(begin(&m));
    CRD_TRY(propose_all(&m, list, count));
    *out = list;
fail:
    crdi_map_clear(&m.keys);
    crdi_map_clear(&m.wished);
    crd_free(arena->ctx, m.links);
    crd_free(arena->ctx, m.heads);
    crd_free(arena->ctx, m.crowds);
    return st;
}

const char* crd_propose_refusal(crd_arena* arena, const crd_endpoint* from, const crd_endpoint* to)
{
    if (from->causality != CRD_OUTPUT) {
        return crdi_arena_format(arena, "%s is no output", from->name);
    }
    if (to->causality != CRD_INPUT) { return crdi_arena_format(arena, "%s is no input", to->name); }
    if (to->taken) { return crdi_arena_format(arena, "%s has a source already", to->name); }
    if (can_connect(from, to)) { return NULL; }
    if (from->size != to->size) {
        return crdi_arena_format(arena, "%s has %u elements and %s has %u", from->name, from->size,
                                 to->name, to->size);
    }
    if (from->has_dimension && to->has_dimension &&
        !crd_dimension_equal(&from->dimension, &to->dimension)) {
        return crdi_arena_format(arena, "%s is in %s and %s in %s: these cannot be converted",
                                 from->name, from->measure, to->name, to->measure);
    }
    return crdi_arena_format(arena, "%s and %s are of types that do not fit", from->name, to->name);
}

bool crd_is_power(const crd_endpoint* a, const crd_endpoint* b)
{
    static const crd_dimension watt = {.kg = 1, .m = 2, .s = -3};
    const crd_dimension *x = &a->dimension, *y = &b->dimension;
    if (!a->has_dimension || !b->has_dimension || is_plain(a) || is_plain(b)) { return false; }
    // an angle is a ratio here: N.m times rad/s are W
    const crd_dimension product = {.kg = (int8_t)(x->kg + y->kg),
                                   .m = (int8_t)(x->m + y->m),
                                   .s = (int8_t)(x->s + y->s),
                                   .A = (int8_t)(x->A + y->A),
                                   .K = (int8_t)(x->K + y->K),
                                   .mol = (int8_t)(x->mol + y->mol),
                                   .cd = (int8_t)(x->cd + y->cd)};
    return crd_dimension_equal(&product, &watt);
}
