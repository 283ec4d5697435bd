/* What an object is called, in SQL: the one rule for every place that prints a name or a time of creation.
 *
 * A team that holds an object calls it by a name of its own (holdings.h). The asker is shown the name and the time
 * of creation of the first of these that exists:
 * 1. its own team's holding;
 * 2. the holding of the team that a record belongs to, where the object is asked for as part of a record;
 * 3. a holding that is shared with the asker: first those of no team, then the oldest;
 * 4. the holding of a team that shares a trial about the strategy with the asker;
 * 5. where no team holds it: the name that it was stored with;
 * 6. else, where only other teams have names for it: the first digits of the id, and the time 0.
 *
 * Parameters of the macros are SQL: `kind` a word of STORE_KIND_TABLE, `row` the object's row, `team` the asker (NULL:
 * nobody), `all` whether everything is seen, `owner` the team of the record (NULL: none).
 * Cost: O(log n) where the first rule holds; O(teams that hold it) for the third; the fourth looks at TRIALS_TRIED
 * trials, so that many hidden ones cost no more. */
#ifndef DATASET_NAMES_INTERNAL_H
#define DATASET_NAMES_INTERNAL_H

#define NAME_DIGITS  "12"
#define TRIALS_TRIED "100"
#define NO_TIME      "'1970-01-01T00:00:00.000Z'"

/* clang-format off */
#define SHARED_WITH(row, team, all)                                                                                    \
    "(" all " OR " row ".shared = '*' OR " row ".team = " team                                                         \
    " OR instr(" row ".shared, '|' || " team " || '|') > 0)"
#define HOLDINGS_OF(kind, row) "FROM holdings h WHERE h.kind = " kind " AND h.object = " row
#define IS_HELD(kind, row)     "EXISTS (SELECT 1 " HOLDINGS_OF(kind, row) ")"
#define HELD_BY(kind, row, who) "(SELECT h.team " HOLDINGS_OF(kind, row) " AND h.team = " who ")"

/* Trials about a strategy that the asker may see, as a FROM clause with an open WHERE. */
#define SEEN_TRIALS(row, team, all)                                                                                    \
    "FROM (SELECT team, shared FROM trials WHERE strategy = " row " LIMIT " TRIALS_TRIED ") t"                         \
    " WHERE " SHARED_WITH("t", team, all)

/* Whether the table of audiences has a reason for the team to see the object (audiences.c). */
#define HAS_REASON(kind, row, team)                                                                                    \
    "EXISTS (SELECT 1 FROM audiences a WHERE a.kind = " kind " AND a.audience IN ('*', " team ") AND a.object = " row  \
    " AND a.reasons > 0)"

/* Whether the asker may see the name of holding `h`: rules 1, 3 and 4. A strategy that the team may not see has no
 * trial that the team may see, so its trials are not read. */
#define IS_TOLD(h, team, all)                                                                                          \
    "(" SHARED_WITH(h, team, all) " OR (" h ".kind = 'strategy' AND "                                                  \
    HAS_REASON("'strategy'", h ".object", team) " AND EXISTS (SELECT 1 "                                               \
    SEEN_TRIALS(h ".object", team, all) " AND t.team = " h ".team)))"

/* The first by rule 3 of the holdings that are shared with the asker; one row, NULL where there is none. min() brings
 * the team along with the least key, which is cheaper than to sort. */
#define FIRST_SHARED(kind, row, team, all)                                                                             \
    "(SELECT m.team FROM (SELECT h.team AS team, min((h.team <> '') || h.created) " HOLDINGS_OF(kind, row)             \
    " AND " SHARED_WITH("h", team, all) ") m)"

/* A holding of a strategy whose team shares a trial with the asker. */
#define FIRST_BY_TRIAL(row, team, all)                                                                                 \
    "(SELECT t.team " SEEN_TRIALS(row, team, all)                                                                      \
    " AND EXISTS (SELECT 1 " HOLDINGS_OF("'strategy'", row) " AND h.team = t.team) LIMIT 1)"

/* The team whose holding names the object: rules 1 to 4; NULL by rules 5 and 6. Most askers hold the object
 * themselves. */
#define NAMER(kind, row, team, all, owner)                                                                             \
    "coalesce(" HELD_BY(kind, row, team) ", CASE WHEN " IS_HELD(kind, row) " THEN coalesce("                           \
    HELD_BY(kind, row, owner) ", " FIRST_SHARED(kind, row, team, all) ", CASE " kind " WHEN 'strategy' THEN "          \
    FIRST_BY_TRIAL(row, team, all) " END) END)"

/* Where a SELECT has the object as `o`: the join, and with it the two columns. */
#define JOIN_NAMER(kind, team, all, owner)                                                                             \
    " LEFT JOIN holdings n ON n.kind = " kind " AND n.object = o.row"                                                  \
    " AND n.team = " NAMER(kind, "o.row", team, all, owner)
#define TOLD_NAME(kind)                                                                                                \
    "coalesce(n.name, CASE WHEN " IS_HELD(kind, "o.row") " THEN substr(o.id, 1, " NAME_DIGITS ") ELSE o.name END)"
#define TOLD_CREATED(kind)                                                                                             \
    "coalesce(n.created, CASE WHEN " IS_HELD(kind, "o.row") " THEN " NO_TIME " ELSE o.created END)"
/* clang-format on */

#endif
