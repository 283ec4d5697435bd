/* The timeline against formulas worked out by hand. Bytes per microsecond are 1000 unless a test says otherwise. */
#include <math.h>

#include "tests/unit/simulator/fixture.h"

#define EXACT 1e-12

/* Forward 10, 20; backward 30, 40; one message of M after it all: T = compute + a + b M. */
static void one_all_reduce_at_the_end_adds_its_whole_cost(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 4);
    handmade_fix(&f.site, 500, 0.001);
    fixture_steps(&f, 2, 4, (double[]){10, 20, 30, 40});
    fixture_message(&f, 100000, 3, 0);
    fixture_finish(&f, POLICY_fifo, 0);
    struct prediction p = fixture_predict(&f, NULL);
    assert_close(p.iteration_us, 100 + 500 + 100, EXACT);
    assert_close(p.compute_us, 100, EXACT);
    assert_close(p.exposed_us, 600, EXACT);
    assert_close(p.comm_busy_us, 600, EXACT);
    assert_close(p.samples_per_s, 32 * 4 / 700e-6, EXACT);
    assert_true(p.converged);
    assert_int_equal(p.messages, 1);
    assert_int_equal(p.passes, 1);
}

/* MG-WFBP equations 6-8: tau_c(l) = max(tau_c(l+1) + t_c(l+1), tau_b(l) + t_b(l)). */
static void wait_free_backpropagation_meets_the_published_recursion(void **state) {
    (void)state;
    const double forward[] = {5, 7, 11, 13, 17, 19}, backward[] = {400, 1200, 90, 2500, 310, 77}; /* 6th layer first */
    const uint64_t bytes[] = {40000, 900000, 1000, 2000000, 333333, 8};
    struct fixture f;
    fixture_cluster(&f, 8);
    handmade_fix(&f.site, 137, 0.0009);
    fixture_steps(&f, 6, 12, (double[]){5, 7, 11, 13, 17, 19, 400, 1200, 90, 2500, 310, 77});
    double ends = 0, done = 0;
    for (int i = 0; i < 6; i++)
        ends += forward[i];
    for (uint32_t i = 0; i < 6; i++) {
        fixture_message(&f, bytes[i], 6 + i, 0);
        ends += backward[i];
        done = fmax(done, ends) + 137 + 0.0009 * (double)bytes[i];
    }
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_iteration_us(&f), done, EXACT);
}

static void communication_shorter_than_the_rest_of_the_backward_pass_is_hidden(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 50, 0.001);
    fixture_steps(&f, 1, 3, (double[]){100, 200, 1000});
    fixture_message(&f, 900000, 1, 0);
    fixture_finish(&f, POLICY_fifo, 0);
    struct prediction p = fixture_predict(&f, NULL);
    assert_close(p.iteration_us, 1300, EXACT);
    assert_true(p.exposed_us == 0);
}

/* n messages ready at once: stop-and-wait pays n (a + b M), credit for all pays a + n b M. */
static void credit_overlaps_startups_and_stop_and_wait_does_not(void **state) {
    (void)state;
    for (int unlimited = 0; unlimited < 2; unlimited++) {
        struct fixture f;
        fixture_cluster(&f, 2);
        handmade_fix(&f.site, 100, 0.001);
        fixture_steps(&f, 1, 2, (double[]){10, 10});
        for (int i = 0; i < 5; i++)
            fixture_message(&f, 1000, 1, 0);
        fixture_finish(&f, POLICY_fifo, unlimited ? CREDIT_UNLIMITED : 0);
        assert_close(fixture_iteration_us(&f), 20 + (unlimited ? 100 + 5 : 5 * 101), EXACT);
    }
}

/* Two of 1000 bytes fit a credit of 2000, the third waits for one to come back. */
static void all_reduces_of_nccl_follow_one_another(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    f.site.cluster.transport = TRANSPORT_nccl;
    f.site.cluster.runtime.coordination_us = f.site.cluster.runtime.message_us = 1e-9; /* 0 takes the typical ones */
    handmade_fix(&f.site, 100, 0.001);
    fixture_steps(&f, 1, 3, (double[]){10, 10, 10});
    fixture_message(&f, 1000, 2, 0); /* the most urgent one is ready last */
    for (int i = 0; i < 3; i++)
        fixture_message(&f, 1000, 1, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    assert_close(fixture_iteration_us(&f), 20 + 4 * 101, 1e-6);
    f.plan.policy = POLICY_priority; /* nothing is overtaken that is in flight */
    assert_close(fixture_iteration_us(&f), 20 + 4 * 101, 1e-6);
}

static void credit_holds_back_what_does_not_fit(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.001);
    fixture_steps(&f, 1, 2, (double[]){10, 10});
    for (int i = 0; i < 3; i++)
        fixture_message(&f, 1000, 1, 0);
    fixture_finish(&f, POLICY_priority, 2000);
    /* 20, then both transfer from 120 at half rate until 122; the third from 222 to 223. */
    struct prediction p = fixture_predict(&f, NULL);
    assert_close(p.iteration_us, 223, EXACT);
    assert_close(p.queue_us, 102, EXACT);
}

/* Gradients come last layer first; the first layer's is needed first. Under priority it overtakes what waits. */
static void priority_overtakes_and_runs_into_the_next_forward_pass(void **state) {
    (void)state;
    const double steps[] = {100, 100, 100, 10, 10, 10};
    for (int priority = 0; priority < 2; priority++) {
        struct fixture f;
        fixture_cluster(&f, 2);
        handmade_fix(&f.site, 0, 0.001);
        fixture_steps(&f, 3, 6, steps);
        for (uint32_t i = 0; i < 3; i++)
            fixture_message(&f, 60000, 3 + i, 2 - i);
        fixture_finish(&f, priority ? POLICY_priority : POLICY_fifo, 0);
        /* Ready at 10, 20, 30 of the backward pass; transfers end at 70, 130, 190. fifo: the first layer's is the
         * last, 190 + 300 of forward. priority: first layer's 70-130, second's 130-190; forward starts at 130. */
        assert_close(fixture_iteration_us(&f), priority ? 130 + 300 : 190 + 300, EXACT);
    }
}

static void messages_that_share_the_network_take_turns_fairly(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 0, 0.001);
    fixture_steps(&f, 1, 3, (double[]){0, 10, 50});
    fixture_message(&f, 100000, 1, 0); /* alone 50, then shared */
    fixture_message(&f, 20000, 2, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    /* At 60: 50 left of the first, 20 of the second: both end by 60 + 40 and 60 + 70. */
    assert_close(fixture_iteration_us(&f), 130, EXACT);
}

static void launching_coordination_and_copies_are_paid(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.001);
    f.site.cluster.runtime.message_us = 7;
    f.site.cluster.runtime.coordination_us = 31;
    f.site.cluster.runtime.copy_gbyte_per_s = 1; /* 1000 bytes a microsecond */
    fixture_steps(&f, 1, 2, (double[]){10, 10});
    fixture_message(&f, 5000, 1, 0)->n_pieces = 2;
    fixture_finish(&f, POLICY_priority, 0);
    assert_close(fixture_iteration_us(&f), 20 + 31 + 7 + 5 + 100 + 5 + 5, EXACT);
    f.plan.policy = POLICY_fifo;
    assert_close(fixture_iteration_us(&f), 20 + 7 + 5 + 100 + 5 + 5, EXACT);
}

/* 3000 of 5000 bytes are encoded from 6000 at 2000 bytes a microsecond; the other 2000 are copied at 1000. */
static void what_is_encoded_is_converted_and_not_copied(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.001);
    f.site.cluster.runtime.copy_gbyte_per_s = 1;
    f.site.cluster.runtime.encode_gbyte_per_s = 2;
    fixture_steps(&f, 1, 2, (double[]){10, 10});
    struct message *m = fixture_message(&f, 5000, 1, 0);
    m->n_pieces = 2;
    m->encoded_bytes = 3000;
    m->unencoded_bytes = 6000;
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_iteration_us(&f), 20 + (3 + 2) + 100 + 5 + (3 + 2), EXACT);
    m->n_pieces = 1;
    m->encoded_bytes = 5000;
    m->unencoded_bytes = 10000;
    assert_close(fixture_iteration_us(&f), 20 + 5 + 100 + 5 + 5, EXACT);
    m->kind = SYNC_PARAMETER_SERVER; /* to node 0 and back: node 1 pays as well */
    f.plan.any_server = true;
    f.plan.any_all_reduce = false;
    f.site.cluster.runtime.encode_gbyte_per_s = 0;
    double free_us = fixture_iteration_us(&f);
    f.site.cluster.runtime.encode_gbyte_per_s = 2;
    assert_close(fixture_iteration_us(&f), free_us + 5 + 5, EXACT);
}

static void launches_of_one_node_follow_one_another(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0);
    f.site.cluster.runtime.message_us = 7;
    fixture_steps(&f, 1, 2, (double[]){10, 10});
    for (int i = 0; i < 10; i++)
        fixture_message(&f, 8, 1, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    assert_close(fixture_iteration_us(&f), 20 + 10 * 7 + 100, EXACT);
}

/* n messages of topk, all ready at once. */
static double topk_us(int n, double way_us) {
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0);
    f.site.cluster.runtime =
        (struct runtime){.message_us = 7, .way_us = way_us, .copy_gbyte_per_s = 2, .topk_gbyte_per_s = 1, .goodput = 1};
    fixture_steps(&f, 1, 2, (double[]){10, 10});
    for (int i = 0; i < n; i++) {
        struct message *m = fixture_message(&f, 80, 1, 0);
        m->encoder = ENCODING_topk;
        m->encoded_bytes = m->bytes;
        m->unencoded_bytes = 8000;
    }
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    return fixture_iteration_us(&f);
}

/* A launch of 7, and 8 to encode. Then a way takes 30, of which the launch was a part, and zeros to add to take 4. Each
 * message waits for all of that of those before it, and not for its own. */
static void moving_and_decoding_take_the_processor_from_messages_behind(void **state) {
    (void)state;
    const double one_us = 20 + 7 + 8 + 100 / 2.0 + 0.08 + 4; /* one way is half of an all-reduce, and 80 bytes */
    for (int n = 1; n <= 20; n++)
        assert_close(topk_us(n, 30), one_us + (n - 1) * (7 + 8 + (30 - 7) + 4), EXACT);
    assert_close(topk_us(1, 500), one_us, EXACT);
}

/* N workers push B into one NIC at once, and it sends B to each: 2 N B / rate. */
static void a_server_of_its_own_takes_all_pushes_through_one_nic(void **state) {
    (void)state;
    for (uint32_t workers = 1; workers <= 8; workers++) {
        struct fixture f;
        fixture_cluster(&f, workers + 1);
        f.site.nodes[workers].devices = 0;
        fixture_steps(&f, 1, 2, (double[]){10, 20});
        struct message *m = fixture_message(&f, 50000, 1, 0);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = workers;
        fixture_finish(&f, POLICY_fifo, 0);
        struct prediction p = fixture_predict(&f, NULL);
        assert_close(p.iteration_us, 30 + 2 * workers * 50, EXACT);
        assert_true(p.converged);
    }
}

/* One worker with a NIC of 1000 bytes a microsecond and its server; iterations compute for 30 us, behind a barrier. */
static void one_worker_pushes(struct fixture *f, uint32_t n, uint64_t bytes, uint64_t credit) {
    fixture_cluster(f, 2);
    f->site.nodes[1].devices = 0;
    fixture_steps(f, 1, 2, (double[]){10, 20});
    for (uint32_t i = 0; i < n; i++) {
        struct message *m = fixture_message(f, bytes, 1, 0);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = 1;
    }
    fixture_finish(f, POLICY_fifo, credit);
}

/* Shared equally both arrive after 100 us; in turn the first is on its way back by then. */
static void messages_on_one_connection_follow_each_other(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 2, 50000, CREDIT_UNLIMITED);
    assert_close(fixture_iteration_us(&f), 30 + 100 + 100, EXACT);
    f.site.cluster.runtime.eager_bytes = 1e6;
    assert_close(fixture_iteration_us(&f), 30 + 50 + 50 + 50, EXACT);
}

static void what_is_larger_than_eager_waits_for_an_answer(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 1, 10000, 0);
    f.site.cluster.runtime.push_us = 3;
    f.site.cluster.runtime.eager_bytes = 10000;
    assert_close(fixture_iteration_us(&f), 30 + 2 * (3 + 10), EXACT);
    f.messages[0].bytes = 50000;
    assert_close(fixture_iteration_us(&f), 30 + 2 * (3 + 3 + 50), EXACT);
}

static void credit_comes_back_with_the_answer(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 2, 5000, 0);
    f.site.cluster.runtime.push_us = 3;
    assert_close(fixture_iteration_us(&f), 30 + 8 + 8 + 8, EXACT);
    f.site.cluster.runtime.eager_bytes = 10000;
    assert_close(fixture_iteration_us(&f), 30 + 8 + 3 + 8 + 8, EXACT);
}

/* Pushed until 33 and 53 us; the first is back from 36 to 66, and the second's answer behind it. Only then has the
 * third its credit: pushed from 69 to 119, back from 122 to 172. */
static void an_answer_waits_for_what_its_connection_carries(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 3, 50000, 50000);
    f.messages[0].bytes = 30000;
    f.messages[1].bytes = 20000;
    f.site.cluster.runtime.push_us = 3;
    f.site.cluster.runtime.eager_bytes = 60000;
    assert_close(fixture_iteration_us(&f), 30 + 172, EXACT);
}

/* Requests come at 3 us and answers at 6; the pushes follow in turn until 56 and 76. The first one's request to come
 * back is answered behind the second push, so it comes from 76 to 126. Behind it comes the second one's request, which
 * is answered at 129; the second is back at 149. */
static void requests_and_answers_wait_for_what_their_connections_carry(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 2, 50000, CREDIT_UNLIMITED);
    f.messages[1].bytes = 20000;
    f.site.cluster.runtime.push_us = 3;
    f.site.cluster.runtime.eager_bytes = 10000;
    assert_close(fixture_iteration_us(&f), 30 + 149, EXACT);
}

/* One worker pushes 20000 bytes each for the third, second and first of its forward steps, which take 100 us each:
 * pushed by 30, 60 and 90 us after the forward pass. What comes back from node 1 moves at a fifth of the NIC's rate. */
static void three_pulls(struct fixture *f, uint32_t n_servers) {
    fixture_cluster(f, 1 + n_servers);
    for (uint32_t i = 1; i <= n_servers; i++)
        f->site.nodes[i].devices = 0;
    f->site.links[f->site.cluster.n_links++] = (struct link){1, 0, 1.6};
    fixture_steps(f, 3, 6, (double[]){100, 100, 100, 10, 30, 30});
    for (uint32_t gate = 0; gate < 3; gate++) {
        struct message *m = fixture_message(f, 20000, 5 - gate, gate);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = gate < 2 ? n_servers : 1;
    }
    fixture_finish(f, POLICY_priority, 0);
}

/* A pull alone takes 100 us. Shared equally, the third step's is back at 255 us, the second's at 315 and the first's at
 * 330. In order, the third's is back at 130, when both others wait: then the first's at 230 and the second's at 330,
 * when the first step ends. */
static void the_pull_that_is_needed_first_overtakes(void **state) {
    (void)state;
    struct fixture f;
    three_pulls(&f, 1);
    assert_close(fixture_iteration_us(&f), 330 + 300, EXACT);
    f.plan.pulls_by_priority = true;
    assert_close(fixture_iteration_us(&f), 230 + 300, EXACT);
    f.plan.credit_bytes = 39999;
    assert_close(fixture_iteration_us(&f), 230 + 300, EXACT);
    /* The second's shares from 60 us on: the third's is back at 200 with 6000 bytes of it left, beside the first's. */
    f.plan.credit_bytes = 40000;
    assert_close(fixture_iteration_us(&f), 200 + 60 + 14000 / 200.0 + 300, EXACT);
    f.plan.credit_bytes = CREDIT_UNLIMITED;
    assert_close(fixture_iteration_us(&f), 330 + 300, EXACT);
}

/* The third step's is back from 30 to 130 us. What comes from the other server moves at the 800 bytes a microsecond
 * that are left. At once, the second's is back from 60 to 85. The answer to the first's push waits for it; so this push
 * takes from 85 to 105, and its pull until 130. In turn, the first's push ends at 90, and it is back from 130 to 150.
 * What is no longer than eager_bytes has no turn. */
static void on_connections_the_rest_of_a_pull_waits_for_its_turn(void **state) {
    (void)state;
    struct fixture f;
    three_pulls(&f, 2);
    f.site.cluster.runtime.eager_bytes = 5000;
    assert_close(fixture_iteration_us(&f), 130 + 300, EXACT);
    f.plan.pulls_by_priority = true;
    assert_close(fixture_iteration_us(&f), 150 + 300, EXACT);
    f.plan.credit_bytes = 40000;
    assert_close(fixture_iteration_us(&f), 130 + 300, EXACT);
    f.site.cluster.runtime.eager_bytes = 20000;
    f.plan.credit_bytes = 0;
    assert_close(fixture_iteration_us(&f), 115 + 300, EXACT);
}

/* Two all-reduces of 120 us, ready at 0, one at a time. Whole: the first is there at 120, the second at 240, when the
 * first step has run until 220. In halves of 60 us: first all first halves, so the first variable is there at 180 and
 * the second at 240, when the step runs until 280. By priority as whole. */
static void second_halves_follow_all_first_ones(void **state) {
    (void)state;
    struct fixture f;
    double us[3];
    for (int way = 0; way < 3; way++) {
        fixture_cluster(&f, 2);
        fixture_steps(&f, 2, 4, (double[]){100, 100, 100, 100});
        handmade_fix(&f.site, 20, 0.01);
        for (uint32_t gate = 0; gate < 2; gate++) {
            struct message *m = fixture_message(&f, 10000, 3, gate);
            if (way > 0)
                fixture_split(&f, m, m->bytes);
        }
        fixture_finish(&f, way == 2 ? POLICY_priority : POLICY_fifo, 0);
        us[way] = fixture_iteration_us(&f);
    }
    assert_close(us[0], 300 + 240, EXACT);
    assert_close(us[1], 300 + 280, EXACT);
    assert_close(us[2], 300 + 240, EXACT);
}

/* An all-reduce of 120 us is ready 80 us before the last step ends, another when it ends; the first step waits for the
 * other. Whole, in the order of readiness, the other is there 160 us after the last step. In halves of 60 us it is
 * there after 120: the first one's second half passes later, beside the first step. */
static void a_second_half_passes_beside_the_forward_pass(void **state) {
    (void)state;
    struct fixture f;
    for (int halves = 0; halves < 2; halves++) {
        fixture_cluster(&f, 2);
        fixture_steps(&f, 2, 4, (double[]){100, 100, 100, 80});
        handmade_fix(&f.site, 20, 0.01);
        struct message *last = fixture_message(&f, 10000, 2, 1);
        if (halves)
            fixture_split(&f, last, last->bytes);
        struct message *first = fixture_message(&f, 10000, 3, 0);
        if (halves)
            fixture_split(&f, first, first->bytes);
        fixture_finish(&f, POLICY_fifo, 0);
        assert_close(fixture_iteration_us(&f), 380 + (halves ? 120 : 160), EXACT);
    }
}

/* Both nodes work and serve; the second message is twice as long. At 500 bytes a microsecond the first is pushed from 3
 * to 103 and the second, the other way, to 203. Behind it, and not beside it, the first comes back until 303, and the
 * second from 206 to 406. */
static void ranks_that_serve_push_and_answer_on_one_connection(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    fixture_steps(&f, 1, 2, (double[]){20, 10});
    for (uint32_t server = 2; server-- > 0;) {
        struct message *m = fixture_message(&f, server ? 50000 : 100000, 1, 0);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = server;
        f.site.nodes[server].nic_latency_us = 1;
    }
    f.site.cluster.transport = TRANSPORT_gloo;
    f.site.cluster.runtime = (struct runtime){.message_us = 1e-3,
                                              .coordination_us = 1e-3,
                                              .push_us = 3,
                                              .copy_gbyte_per_s = 1e6,
                                              .sum_gbyte_per_s = 1e6,
                                              .encode_gbyte_per_s = 1e6,
                                              .goodput = 0.5};
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    assert_close(fixture_iteration_us(&f), 30 + 406, 1e-3);
}

/* The first push is there at 103 us and its word back at 106, so the second is on its way from 109 to 209. Pulls at
 * once come until 212 and 312, one behind the other. In turn each is first asked for: the second, whose sum is there at
 * 209, is offered at 212, asked for at 215, and there at 315. */
static void ranks_that_serve_ask_for_pulls_in_turn(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 2, 50000, 0);
    f.site.nodes[0].nic_latency_us = f.site.nodes[1].nic_latency_us = 1;
    f.site.cluster.transport = TRANSPORT_gloo;
    f.site.cluster.runtime = (struct runtime){.message_us = 1e-3,
                                              .coordination_us = 1e-3,
                                              .push_us = 3,
                                              .copy_gbyte_per_s = 1e6,
                                              .sum_gbyte_per_s = 1e6,
                                              .encode_gbyte_per_s = 1e6,
                                              .goodput = 0.5};
    assert_close(fixture_iteration_us(&f), 30 + 312, 1e-3);
    f.plan.pulls_by_priority = true;
    assert_close(fixture_iteration_us(&f), 30 + 315, 1e-3);
}

/* Idle for longer than it takes to save 20000 bytes, each direction lets as many pass at once. */
static void an_idle_nic_lets_pass_at_once_what_it_saved(void **state) {
    (void)state;
    struct fixture f;
    one_worker_pushes(&f, 1, 50000, 0);
    f.site.cluster.runtime.eager_bytes = 1e9;
    handmade_burst(&f.site, 0.001, 20000);
    assert_close(fixture_iteration_us(&f), 30 + 2 * 30, EXACT);
    handmade_burst(&f.site, 0.001, 200000);
    assert_close(fixture_iteration_us(&f), 50, EXACT);
}

/* Two trees of 100000 bytes, each 100 us to the root and 100 us back, the first ready 30 us after the iteration began
 * and the second `later_us` after that. */
static double two_trees_us(double eager_bytes, double later_us) {
    struct fixture f;
    fixture_cluster(&f, 2);
    fixture_steps(&f, 1, 3, (double[]){10, 20, later_us});
    for (uint32_t i = 0; i < 2; i++)
        fixture_message(&f, 100000, 1 + i, 0)->algorithm = ALGORITHM_tree;
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    handmade_burst(&f.site, 0.001, 2);
    for (int i = 0; i < 2; i++) {
        f.site.curves[i] = f.site.pushes[i];
        f.site.curves[2 + i] = (struct measurement){.operation = OPERATION_all_reduce,
                                                    .algorithm = ALGORITHM_tree,
                                                    .devices = 2,
                                                    .bytes = i ? 100000 : 1,
                                                    .time_us = i ? 210 : 10};
    }
    f.site.cluster.measurements = f.site.curves;
    f.site.cluster.n_measurements = 4;
    f.site.cluster.runtime.eager_bytes = eager_bytes;
    return fixture_iteration_us(&f);
}

/* In turn, the second goes to the root while the first comes back; shared equally, both are at the root after 200 us.
 */
static void trees_go_to_the_root_and_back_in_turn(void **state) {
    (void)state;
    assert_close(two_trees_us(1e6, 0), 30 + 10 + 300, 1e-4);
}

/* The root's request to send the first back is answered behind the second, which was asked for before. */
static void a_large_tree_comes_back_after_all_that_go_to_the_root(void **state) {
    (void)state;
    assert_close(two_trees_us(65536, 0), 30 + 10 + 400, 1e-4);
}

/* The first comes back from 140 to 240 us. The second, from 190 us on, may go at once if it is small. */
static void a_large_tree_goes_to_the_root_after_all_that_come_back(void **state) {
    (void)state;
    assert_close(two_trees_us(1e6, 150), 190 + 200, 1e-4);
    assert_close(two_trees_us(65536, 150), 240 + 200, 1e-4);
}

static void servers_spread_over_all_nodes_share_the_load(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 4);
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    for (uint32_t s = 0; s < 4; s++) {
        struct message *m = fixture_message(&f, 50000, 1, 0);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = s;
    }
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    /* Every NIC sends 3 pushes and takes 3 at once, then the same for pulls; its own shard moves for nothing. */
    assert_close(fixture_iteration_us(&f), 30 + 3 * 50 + 3 * 50, EXACT);
}

static void pushes_without_local_reduction_go_once_a_device(void **state) {
    (void)state;
    for (int local = 0; local < 2; local++) {
        struct fixture f;
        fixture_cluster(&f, 2);
        f.site.nodes[0].devices = 4;
        f.site.nodes[0].device_link_gbyte_per_s = 10;
        f.site.nodes[1].devices = 0;
        f.site.cluster.runtime.sum_gbyte_per_s = 5;
        f.site.cluster.runtime.push_us = 3;
        fixture_steps(&f, 1, 2, (double[]){10, 20});
        struct message *m = fixture_message(&f, 50000, 1, 0);
        m->kind = SYNC_PARAMETER_SERVER;
        m->server = 1;
        m->local_reduction = local;
        fixture_finish(&f, POLICY_fifo, 0);
        /* Local: 3 hops of 5 and 3 sums of 10 before, 3 hops of 5 after. Otherwise 4 copies and 3 sums at the server.
         */
        double want = local ? 30 + 3 * 5 + 3 * 10 + 3 + 50 + 3 + 50 + 3 * 5 : 30 + 3 + 200 + 3 * 10 + 3 + 200;
        assert_close(fixture_iteration_us(&f), want, EXACT);
    }
}

static void a_server_on_the_same_node_uses_the_device_link(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 1);
    f.site.nodes[0].device_link_gbyte_per_s = 4;
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    fixture_message(&f, 8000, 1, 0)->kind = SYNC_PARAMETER_SERVER;
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_iteration_us(&f), 30 + 2 + 2, EXACT);
    f.site.nodes[0].device_link_gbyte_per_s = 0;
    assert_close(fixture_iteration_us(&f), 30, EXACT);
}

static void an_overridden_link_slows_the_flow_that_uses_it(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    f.site.nodes[1].devices = 0;
    f.site.links[0] = (struct link){0, 1, 2};
    f.site.cluster.n_links = 1;
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    struct message *m = fixture_message(&f, 50000, 1, 0);
    m->kind = SYNC_PARAMETER_SERVER;
    m->server = 1;
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_iteration_us(&f), 30 + 200 + 50, EXACT);
}

static void a_straggler_sets_the_pace_of_all_reduce(void **state) {
    (void)state;
    for (int every = 0; every < 2; every++) {
        struct fixture f;
        fixture_cluster(&f, 3);
        f.site.nodes[1].compute_scale = 2;
        handmade_fix(&f.site, 5, 0.001);
        fixture_steps(&f, 1, 2, (double[]){10, 20});
        fixture_message(&f, 1000, 1, 0);
        fixture_finish(&f, POLICY_fifo, 0);
        struct prediction p = fixture_predict(&f, &(struct timeline_options){.every_node = every});
        assert_close(p.iteration_us, 60 + 6, EXACT);
        assert_close(p.compute_us, 60, EXACT);
    }
}

/* An all-reduce alone in a mixed plan takes what it takes in a plan of its own. */
static void an_all_reduce_beside_a_tiny_push_takes_its_own_time(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    f.site.nodes[1].nic_gbit_per_s = 4;
    fixture_steps(&f, 1, 3, (double[]){10, 1, 20});
    struct message *m = fixture_message(&f, 8, 1, 0);
    m->kind = SYNC_PARAMETER_SERVER;
    m->server = 0;
    fixture_message(&f, 100000, 2, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    /* Ring of two: M / rate of the narrowest, 500 bytes a microsecond. */
    assert_close(fixture_iteration_us(&f), 31 + 200, EXACT);
}

static void a_plan_without_messages_is_its_compute(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    f.site.nodes[0].compute_scale = 1.5;
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_iteration_us(&f), 45, EXACT);
}

/* ByteScheduler 4.1: with partitions of delta and overhead theta each, an all-reduce iteration is at most the sum of
 * floor(size / delta) theta and one partition's transmission later than with infinitely small ones. */
static double partitioned_us(const uint64_t *sizes, uint32_t n, uint64_t delta, double theta) {
    struct fixture f;
    double steps[FIXTURE_STEPS];
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, theta, 0.001);
    for (uint32_t k = 0; k < 2 * n; k++)
        steps[k] = 20 + 3 * (k % 5);
    fixture_steps(&f, n, 2 * n, steps);
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t left = sizes[i]; left > 0; left -= left < delta ? left : delta)
            fixture_message(&f, left < delta ? left : delta, n + i, n - 1 - i);
    fixture_finish(&f, POLICY_priority, 0);
    return fixture_iteration_us(&f);
}

static void partitions_delay_by_no_more_than_the_published_bound(void **state) {
    (void)state;
    const uint64_t sizes[] = {96000, 12000, 48000, 24000};
    double ideal = partitioned_us(sizes, 4, 1500, 0);
    for (uint64_t delta = 3000; delta <= 96000; delta *= 2)
        for (double theta = 0; theta < 30; theta += 10) {
            double overhead = theta;
            for (int i = 0; i < 4; i++)
                overhead += floor((double)sizes[i] / (double)delta) * theta;
            double delay = partitioned_us(sizes, 4, delta, theta) - ideal;
            assert_true(delay <= overhead + (double)delta / 1000 + 1e-6);
        }
}

struct totals {
    double compute_us, message_us;
    int n;
};

static void add_interval(void *context, const struct interval *interval) {
    struct totals *t = context;
    *(interval->kind == INTERVAL_COMPUTE ? &t->compute_us : &t->message_us) += interval->end_us - interval->start_us;
    t->n++;
}

static void intervals_cover_compute_and_messages(void **state) {
    (void)state;
    struct fixture f;
    struct totals totals = {0, 0, 0};
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.001);
    fixture_steps(&f, 1, 2, (double[]){10, 20});
    fixture_message(&f, 1000, 1, 0);
    fixture_finish(&f, POLICY_fifo, 0);
    fixture_predict(&f, &(struct timeline_options){.record = add_interval, .context = &totals, .passes = 3});
    assert_close(totals.compute_us, 3 * 30, EXACT);
    assert_close(totals.message_us, 3 * 101, EXACT);
    assert_int_equal(totals.n, 9);
}

/* The gradient is there at 0; a step of 300 us follows it.
 *   startup   100 us at half its speed: 200 us, of which the step makes 100 at half its own
 *   transfer  200 us at half its speed while the step's other 200 pass at 0.8, for 250 us; its last 75 us go alone
 * Then 100 us forward, and 50 us to the gradient. Undisturbed the step would hide the message: 450 us. */
static void computing_and_traffic_slow_each_other_while_they_overlap(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.2);
    f.site.cluster.in_startup = (struct interference){.compute = 0.5, .traffic = 0.5};
    f.site.cluster.in_transfer = (struct interference){.compute = 0.8, .traffic = 0.5};
    fixture_steps(&f, 1, 3, (double[]){100, 50, 300});
    fixture_message(&f, 1000, 1, 0);
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_predict(&f, NULL).iteration_us, 200 + 250 + 75 + 100 + 50, EXACT);
    f.site.cluster.in_startup = f.site.cluster.in_transfer = (struct interference){0};
    fixture_finish(&f, POLICY_fifo, 0);
    assert_close(fixture_predict(&f, NULL).iteration_us, 450, EXACT);
}

/* Two gradients are there at 0 and at 150 us. Alone a message takes 100 us to start and 200 to move.
 *   first    starts 0..100, moves from 100 on
 *   second   starts at 150 at a quarter of its speed: 37.5 of its 100 us until 300, when the first is through; then at
 *            full speed until 362.5; moves until 562.5
 * Then 100 us forward. With nothing to wait behind, the second starts until 250 and both move side by side from there:
 * the first until 350, the second until 500. */
static void a_startup_is_slow_beside_bytes_that_move(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 2);
    handmade_fix(&f.site, 100, 0.2);
    f.site.cluster.in_startup = (struct interference){.beside = 0.25};
    fixture_steps(&f, 1, 3, (double[]){100, 0, 150});
    fixture_message(&f, 1000, 1, 0);
    fixture_message(&f, 1000, 2, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    assert_close(fixture_predict(&f, NULL).iteration_us, 562.5 + 100, EXACT);
    f.site.cluster.in_startup = (struct interference){0};
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    assert_close(fixture_predict(&f, NULL).iteration_us, 500 + 100, EXACT);
}

static void plans_that_cannot_be_run_are_refused(void **state) {
    (void)state;
    struct error err;
    struct cost cost;
    struct prediction p = {.iteration_us = -1};
    struct fixture f;
    fixture_cluster(&f, 2);
    fixture_steps(&f, 1, 3, (double[]){10, 20, 30});
    fixture_message(&f, 1000, 1, 2);
    fixture_finish(&f, POLICY_fifo, 0);
    struct timeline *tl = timeline_new();
    assert_ok(cost_init(&cost, &f.site.cluster, &err));
    assert_fails(timeline_run(tl, &f.plan, &cost, NULL, &p, &err), ST_INVALID, "step 2 waits");
    assert_true(p.iteration_us == -1);
    cost_release(&cost);
    timeline_free(tl);
}

static void a_timeline_is_reused_for_larger_and_smaller_plans(void **state) {
    (void)state;
    struct error err;
    struct prediction p;
    struct timeline *tl = timeline_new();
    for (uint32_t round = 0; round < 6; round++) {
        struct fixture f;
        struct cost cost;
        uint32_t n = round % 2 ? 1 : 12;
        fixture_cluster(&f, 2 + round);
        handmade_fix(&f.site, 100, 0.001);
        fixture_steps(&f, 1, 2, (double[]){10, 20});
        for (uint32_t i = 0; i < n; i++)
            fixture_message(&f, 1000, 1, 0);
        fixture_finish(&f, POLICY_fifo, 0);
        assert_ok(cost_init(&cost, &f.site.cluster, &err));
        assert_ok(timeline_run(tl, &f.plan, &cost, NULL, &p, &err));
        assert_close(p.iteration_us, 30 + n * 101, EXACT);
        cost_release(&cost);
    }
    timeline_free(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_all_reduce_at_the_end_adds_its_whole_cost),
        cmocka_unit_test(wait_free_backpropagation_meets_the_published_recursion),
        cmocka_unit_test(communication_shorter_than_the_rest_of_the_backward_pass_is_hidden),
        cmocka_unit_test(credit_overlaps_startups_and_stop_and_wait_does_not),
        cmocka_unit_test(all_reduces_of_nccl_follow_one_another),
        cmocka_unit_test(credit_holds_back_what_does_not_fit),
        cmocka_unit_test(priority_overtakes_and_runs_into_the_next_forward_pass),
        cmocka_unit_test(messages_that_share_the_network_take_turns_fairly),
        cmocka_unit_test(launching_coordination_and_copies_are_paid),
        cmocka_unit_test(what_is_encoded_is_converted_and_not_copied),
        cmocka_unit_test(launches_of_one_node_follow_one_another),
        cmocka_unit_test(moving_and_decoding_take_the_processor_from_messages_behind),
        cmocka_unit_test(a_server_of_its_own_takes_all_pushes_through_one_nic),
        cmocka_unit_test(messages_on_one_connection_follow_each_other),
        cmocka_unit_test(what_is_larger_than_eager_waits_for_an_answer),
        cmocka_unit_test(credit_comes_back_with_the_answer),
        cmocka_unit_test(an_answer_waits_for_what_its_connection_carries),
        cmocka_unit_test(requests_and_answers_wait_for_what_their_connections_carry),
        cmocka_unit_test(the_pull_that_is_needed_first_overtakes),
        cmocka_unit_test(on_connections_the_rest_of_a_pull_waits_for_its_turn),
        cmocka_unit_test(second_halves_follow_all_first_ones),
        cmocka_unit_test(a_second_half_passes_beside_the_forward_pass),
        cmocka_unit_test(ranks_that_serve_push_and_answer_on_one_connection),
        cmocka_unit_test(ranks_that_serve_ask_for_pulls_in_turn),
        cmocka_unit_test(an_idle_nic_lets_pass_at_once_what_it_saved),
        cmocka_unit_test(trees_go_to_the_root_and_back_in_turn),
        cmocka_unit_test(a_large_tree_comes_back_after_all_that_go_to_the_root),
        cmocka_unit_test(a_large_tree_goes_to_the_root_after_all_that_come_back),
        cmocka_unit_test(servers_spread_over_all_nodes_share_the_load),
        cmocka_unit_test(pushes_without_local_reduction_go_once_a_device),
        cmocka_unit_test(a_server_on_the_same_node_uses_the_device_link),
        cmocka_unit_test(an_overridden_link_slows_the_flow_that_uses_it),
        cmocka_unit_test(a_straggler_sets_the_pace_of_all_reduce),
        cmocka_unit_test(an_all_reduce_beside_a_tiny_push_takes_its_own_time),
        cmocka_unit_test(a_plan_without_messages_is_its_compute),
        cmocka_unit_test(partitions_delay_by_no_more_than_the_published_bound),
        cmocka_unit_test(intervals_cover_compute_and_messages),
        cmocka_unit_test(computing_and_traffic_slow_each_other_while_they_overlap),
        cmocka_unit_test(a_startup_is_slow_beside_bytes_that_move),
        cmocka_unit_test(plans_that_cannot_be_run_are_refused),
        cmocka_unit_test(a_timeline_is_reused_for_larger_and_smaller_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
