/* The handlers of the table in routes.c; each api_*.c has those of one resource. */
#ifndef TUNER_HTTP_API_H
#define TUNER_HTTP_API_H

#include "tuner/http/routes.h"

route_handler api_healthz, api_readyz, api_metrics, api_openapi;              /* api_status.c */
route_handler api_models_list, api_models_create, api_models_get;             /* api_objects.c */
route_handler api_clusters_list, api_clusters_create, api_clusters_get;       /* api_objects.c */
route_handler api_strategies_list, api_strategies_create, api_strategies_get; /* api_objects.c */
route_handler api_predictions_create;                                         /* api_predictions.c */

/* api_sessions.c */
route_handler api_sessions_list, api_sessions_create, api_sessions_get, api_sessions_patch, api_sessions_pause,
    api_sessions_resume, api_sessions_stop, api_sessions_cancel;

/* api_trials.c */
route_handler api_sessions_best, api_sessions_importance, api_sessions_events, api_trials_list, api_trials_get,
    api_trials_suggest, api_trials_heartbeat, api_trials_report, api_trials_complete, api_trials_fail;

route_handler api_sessions_export;                     /* api_exports.c */
route_handler api_records_patch;                       /* api_record_changes.c */
route_handler api_records_list, api_records_get;       /* api_records.c */
route_handler api_records_create, api_trials_import;   /* api_record_batches.c */
route_handler api_records_import;                      /* api_record_lines.c */
route_handler api_rankers_list;                        /* api_objects.c */
route_handler api_rankers_get, api_rankers_create;     /* api_rankers.c */
route_handler api_operations_list, api_operations_get; /* api_operations.c */

/* Pages: page_sessions.c, page_session.c, page_strategies.c, page_dataset.c, page_sign_in.c */
route_handler page_home, page_home_open;
route_handler page_session, page_session_whole, page_session_live, page_session_steer;
route_handler page_strategy, page_compare;
route_handler page_dataset, page_models, page_clusters;
route_handler page_sign_in, page_sign_in_send, page_sign_out, page_problem_kind, page_style, page_script, page_icon;

#endif
