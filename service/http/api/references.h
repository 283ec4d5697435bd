/* Members of a body that name a model, a cluster and strategies: by a stored one's id (whole, or 4 first digits and
 * more) or name, or written out in place. */
#ifndef SERVICE_HTTP_API_REFERENCES_H
#define SERVICE_HTTP_API_REFERENCES_H

#include "base/json.h"
#include "service/http/transport/request.h"
#include "service/prepared_domains.h"
#include "strategy/strategy.h"
#include "tuner/predict/what_if.h"

/* The whole id of the object that `word` names for the asker (seen_find in dataset/holdings.h). Fails: ST_NOT_FOUND,
 * also of what is hidden, ST_USAGE (several). */
enum status reference_id(struct request *request, enum store_kind kind, const char *word, struct id *out,
                         struct error *err);

/* The same; *row is its row number (seen_row) where the word is a whole id, else 0. */
enum status reference_row(struct request *request, enum store_kind kind, const char *word, struct id *out, int64_t *row,
                          struct error *err);

/* The same, and the name that the object has for the asker (seen_name), in the request's arena. */
enum status reference_name(struct request *request, enum store_kind kind, const char *word, struct id *out,
                           const char **name, struct error *err);

/* Whether `word` has the form of a whole id. */
bool reference_is_id(const char *word);

/* The members "model" and "cluster" of `at`. Drop with prepared_domain_drop. Fails: ST_NOT_FOUND, ST_INVALID. */
enum status reference_domain(struct request *request, const struct json_at *at, struct prepared_domain **out,
                             struct error *err);

/* In place of the domain one of this request alone, with other figures. It stays the same where nothing changes. Fails:
 * as what_if_apply and prepared_domain_new; *domain is then as it was. */
enum status reference_what_if(const struct what_if *what_if, struct prepared_domain **domain, struct error *err);

/* A strategy in place, or a stored one's id or name. Release with strategy_release. */
enum status reference_strategy(struct request *request, const struct prepared_domain *domain, const struct json_at *at,
                               struct strategy *out, struct error *err);

/* The stored strategy, under the name that it has for the asker (reference_name). */
enum status reference_stored(struct request *request, const struct prepared_domain *domain, const struct id *id,
                             const char *name, struct strategy *out, struct error *err);

#endif
