/* The handlers of the API, for the table in ../routes.c. Each source file has those of one subject. */
#ifndef SERVICE_HTTP_API_API_H
#define SERVICE_HTTP_API_API_H

#include "service/http/transport/route.h"

route_handler api_healthz, api_readyz, api_metrics, api_openapi;              /* status.c */
route_handler api_models_list, api_models_create, api_models_get;             /* objects.c */
route_handler api_clusters_list, api_clusters_create, api_clusters_get;       /* objects.c */
route_handler api_strategies_list, api_strategies_create, api_strategies_get; /* objects.c */
route_handler api_predictions_create;                                         /* predictions.c */
route_handler api_advice_create;                                              /* advice.c */
route_handler api_explanations_create;                                        /* explanations.c */

/* sessions.c */
route_handler api_sessions_list, api_sessions_create, api_sessions_get, api_sessions_patch, api_sessions_pause,
    api_sessions_resume, api_sessions_stop, api_sessions_cancel;

/* trials.c */
route_handler api_sessions_events, api_trials_list, api_trials_get, api_trials_suggest, api_trials_heartbeat,
    api_trials_report, api_trials_complete, api_trials_fail;

route_handler api_bench_complete, api_bench_fail;                               /* benches.c */
route_handler api_sessions_best, api_sessions_importance, api_sessions_outcome; /* outcomes.c */
route_handler api_sessions_export;                                              /* exports.c */
route_handler api_records_patch;                                                /* record_changes.c */
route_handler api_records_list, api_records_get;                                /* records.c */
route_handler api_records_create, api_trials_import;                            /* record_batches.c */
route_handler api_records_import;                                               /* record_lines.c */
route_handler api_rankers_list;                                                 /* objects.c */
route_handler api_rankers_get, api_rankers_create;                              /* rankers.c */
route_handler api_operations_list, api_operations_get;                          /* operations.c */

#endif
