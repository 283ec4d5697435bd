/* The handlers of the pages, for the table in ../routes.c. */
#ifndef SERVICE_HTTP_PAGES_PAGES_H
#define SERVICE_HTTP_PAGES_PAGES_H

#include "service/http/transport/route.h"

route_handler page_home, page_home_live, page_home_open;
route_handler page_session, page_session_whole, page_session_live, page_session_steer;
route_handler page_strategy, page_compare, page_way;
route_handler page_compare_sessions, page_what_if;
route_handler page_advice;
route_handler page_traces, page_traces_explain;
route_handler page_dataset, page_models, page_clusters;
route_handler page_sign_in, page_sign_in_send, page_sign_out, page_problem_kind, page_style, page_script, page_icon,
    page_llms;

#endif
