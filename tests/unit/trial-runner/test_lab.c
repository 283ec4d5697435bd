/* A lab is what it promises: names, addresses, rates, isolation, and nothing left when it or its caller ends. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "trial-runner/lab.h"

static const struct lab_node four[] = {{"n1", 1.0}, {"n2", 1.0}, {"n3", 1.0}, {"n4", 0.5}};

/* Which fork from now on fails, also when a child makes it; 0: none. */
static int failing_fork;

pid_t fork(void) {
    if (failing_fork > 0 && --failing_fork == 0) {
        errno = EAGAIN;
        return -1;
    }
    pid_t (*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "fork");
    return real();
}

struct text {
    char all[8192];
};

static bool collect(void *context, enum process_stream stream, const char *line, size_t n) {
    struct text *text = context;
    size_t have = strlen(text->all);
    if (stream == PROCESS_STDOUT && have + n + 2 < sizeof text->all)
        snprintf(text->all + have, sizeof text->all - have, "%s\n", line);
    return true;
}

static enum status run_in(const struct lab_config *config, const char *script, struct text *text, struct error *err) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct process_options options = {.argv = argv, .timeout_s = 60, .on_line = collect, .context = text};
    struct process_result result;
    enum status status = lab_run(config, &options, &result, err);
    return status == ST_OK ? process_judge(&result, "the script", err) : status;
}

static int setup(void **state) {
    if (adopt_orphans(state) != 0)
        return -1;
    static bool possible;
    possible = test_lab_possible();
    *state = &possible;
    return 0;
}

static void need_lab(void **state) {
    if (!*(bool *)*state)
        skip();
}

static void nodes_have_their_names_and_reach_each_other(void **state) {
    need_lab(state);
    struct lab_config config = {.name = "t", .n = 4, .nodes = four};
    struct text text = {0};
    struct error err = {0};
    const char *script = "hostname; for n in n1 n4; do /run/lab/agent $n 'hostname; echo $TMPDIR; "
                         "ip -o -4 addr show eth0 | tr -s \" \" | cut -d\" \" -f4'; done; "
                         "/run/lab/agent n1 \"bash -c 'echo hello >/dev/tcp/n3/7' 2>&1\" | grep -o refused | head -1";
    assert_ok(run_in(&config, script, &text, &err));
    assert_string_equal(text.all, "head\nn1\n/run/tmp/n1\n198.18.1.1/15\nn4\n/run/tmp/n4\n198.18.1.4/15\nrefused\n");
}

static void nothing_outside_is_reachable_or_visible(void **state) {
    need_lab(state);
    struct lab_config config = {.name = "t", .n = 2, .nodes = four};
    struct text text = {0};
    struct error err = {0};
    const char *script = "ip -4 route; ls /sys/class/net >/dev/null; ip -o link | grep -vc -e br0 -e ' lo' -e port; "
                         "ls /run; ps ax -o pid= | head -1 | tr -d ' '; touch /run/x /dev/shm/syncopate-lab-test";
    assert_ok(run_in(&config, script, &text, &err));
    assert_string_equal(text.all,
                        "198.18.0.0/15 dev br0 proto kernel scope link src 198.18.0.1 \n0\nlab\nnetns\ntmp\n1\n");
    assert_int_equal(access("/run/x", F_OK), -1);
    assert_int_equal(entries_with("/dev/shm", "syncopate-lab-test"), 0);
}

/* Bytes per second through one TCP connection between two nodes, by a reader that counts for a second. */
static double rate_between(const struct lab_config *config, const char *to, int bytes_mb) {
    static const char *const receiver =
        "import socket,time\n"
        "s=socket.create_server((\"\",7000)); print(\"ready\",flush=True); c,_=s.accept(); n=0; t=0\n"
        "while True:\n"
        "  d=c.recv(1<<20)\n"
        "  if not d: break\n"
        "  n+=len(d)\n"
        "  if not t and n>=1<<20: t=time.monotonic(); m=n\n" /* the first bucket and slow start do not count */
        "print(\"rate\",(n-m)/(time.monotonic()-t))\n";
    static const char *const sender = "import socket,sys\n"
                                      "s=socket.create_connection((sys.argv[1],7000)); b=b\"x\"*(1<<20)\n"
                                      "for i in range(int(sys.argv[2])): s.sendall(b)\n";
    char script[2048];
    snprintf(script, sizeof script,
             "cat >/run/r.py <<'END'\n%sEND\ncat >/run/s.py <<'END'\n%sEND\n"
             "mkfifo /run/up; /run/lab/agent %s python3 /run/r.py >/run/up & exec 3</run/up; read ready <&3\n"
             "/run/lab/agent n1 python3 /run/s.py %s %d; cat <&3",
             receiver, sender, to, to, bytes_mb);
    struct text text = {0};
    struct error err = {0};
    assert_ok(run_in(config, script, &text, &err));
    double rate = 0;
    assert_int_equal(sscanf(text.all, "rate %lf", &rate), 1);
    return rate;
}

static void links_run_at_their_rates(void **state) {
    need_lab(state);
    if (system("python3 -c 'import socket' 2>/dev/null") != 0)
        skip();
    struct lab_link slow = {.from = 0, .to = 1, .gbit_per_s = 0.1};
    struct lab_config config = {.name = "t", .n = 4, .nodes = four, .n_links = 1, .links = &slow};
    assert_close(rate_between(&config, "n2", 10), 0.1 * 125e6, 0.15);
    assert_close(rate_between(&config, "n4", 40), 0.5 * 125e6, 0.15); /* the receiver's NIC */
    config.n_links = 0;
    assert_close(rate_between(&config, "n2", 80), 1.0 * 125e6, 0.15);
}

/* n1 sends to n3 over eight connections and n2 over one. n3 counts what comes from each in a second, once both have
 * sent their first MB. */
static void nodes_share_a_nic_whatever_their_connections(void **state) {
    need_lab(state);
    if (system("python3 -c 'import socket' 2>/dev/null") != 0)
        skip();
    static const char *const script =
        "cat >/run/r.py <<'END'\n"
        "import selectors,socket,time\n"
        "s=socket.create_server((\"\",7000)); print(\"ready\",flush=True)\n"
        "all=selectors.DefaultSelector(); n={}; end=0\n"
        "for i in range(9):\n"
        "  c,a=s.accept(); n[a[0]]=0; all.register(c,selectors.EVENT_READ,a[0])\n"
        "while not end or time.monotonic()<end:\n"
        "  for k,_ in all.select(1): n[k.data]+=len(k.fileobj.recv(1<<18))\n"
        "  if not end and min(n.values())>1<<20: end=time.monotonic()+1; n={k:0 for k in n}\n"
        "print(\"bytes\",n[\"198.18.1.1\"],n[\"198.18.1.2\"])\n"
        "END\n"
        "cat >/run/s.py <<'END'\n"
        "import socket,sys,threading\n"
        "def send():\n"
        "  try:\n"
        "    s=socket.create_connection((\"n3\",7000))\n"
        "    for i in range(400): s.sendall(b\"x\"*(1<<20))\n"
        "  except OSError: pass\n"
        "for i in range(int(sys.argv[1])): threading.Thread(target=send).start()\n"
        "END\n"
        "mkfifo /run/up; /run/lab/agent n3 python3 /run/r.py >/run/up & exec 3</run/up; read ready <&3\n"
        "/run/lab/agent n1 python3 /run/s.py 8 & /run/lab/agent n2 python3 /run/s.py 1 & cat <&3";
    struct lab_config config = {.name = "t", .n = 4, .nodes = four};
    struct text text = {0};
    struct error err = {0};
    double n1 = 0, n2 = 0;
    assert_ok(run_in(&config, script, &text, &err));
    assert_int_equal(sscanf(text.all, "bytes %lf %lf", &n1, &n2), 2);
    assert_close(n1 + n2, 1.0 * 125e6, 0.15);
    assert_close(n2, n1, 0.15);
}

/* A namespace may have cubic where the machine allows it to all. */
static const char *expected_tcp(void) {
    char allowed[256] = "";
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "re");
    assert_non_null(file);
    if (!fgets(allowed, sizeof allowed, file))
        *allowed = '\0';
    fclose(file);
    return strstr(allowed, "cubic") ? "cubic\n" : "reno\n";
}

static void tcp_is_the_same_in_every_lab(void **state) {
    need_lab(state);
    struct lab_config config = {.name = "t", .n = 4, .nodes = four};
    struct text text = {0};
    struct error err = {0};
    assert_ok(run_in(&config, "/run/lab/agent n4 cat /proc/sys/net/ipv4/tcp_congestion_control", &text, &err));
    assert_string_equal(text.all, expected_tcp());
}

/* A trace changes n1's sending at once, n4's receiving at once and again after a fifth of a second, and nothing else.
 * The script waits up to 20 s for each rate. */
static void rates_change_as_the_weather_says(void **state) {
    need_lab(state);
    static const char rate[] =
        "rate() { for i in $(seq 200); do $1 tc qdisc show dev $2 | grep -q \"rate $3 \" && echo $2 $3 && return; "
        "sleep 0.1; done; echo $2 never $3; $1 tc qdisc show dev $2; }; "
        "rate '/run/lab/agent n1' eth0 250Mbit; rate '' port1 1Gbit; rate '' port4 100Mbit; "
        "rate '/run/lab/agent n4' eth0 500Mbit; rate '/run/lab/agent n2' eth0 1Gbit; rate '' port4 50Mbit";
    static const struct rate_change changes[] = {{0, 0, DIRECTION_OUT, 0.25},
                                                 {0, 3, DIRECTION_IN, 0.2},
                                                 {0, 3, DIRECTION_IN, 0.1},
                                                 {2e6, 3, DIRECTION_IN, 0.05}};
    struct node nodes[4] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
    for (int i = 0; i < 4; i++)
        nodes[i].nic_gbit_per_s = four[i].gbit_per_s;
    const struct cluster cluster = {
        .n_nodes = 4,
        .nodes = nodes,
        .variability = {.given = true, .slow_factor = 1, .trace_us = 1e9, .n_changes = 4, .changes = changes}};
    struct lab_config config = {.name = "t", .n = 4, .nodes = four, .weather = &cluster, .seed = 1};
    struct text text = {0};
    struct error err = {0};
    assert_ok(run_in(&config, rate, &text, &err));
    assert_string_equal(text.all, "eth0 250Mbit\nport1 1Gbit\nport4 100Mbit\neth0 500Mbit\neth0 1Gbit\nport4 50Mbit\n");
}

static void programs_on_nodes_know_when_the_weather_began(void **state) {
    need_lab(state);
    struct node nodes[4] = {{.name = "n1"}, {.name = "n2"}, {.name = "n3"}, {.name = "n4"}};
    for (int i = 0; i < 4; i++)
        nodes[i].nic_gbit_per_s = four[i].gbit_per_s;
    const struct cluster cluster = {.n_nodes = 4, .nodes = nodes, .variability = {.given = true, .slow_factor = 1}};
    struct lab_config config = {.name = "t", .n = 4, .nodes = four, .weather = &cluster, .seed = 1};
    struct text text = {0};
    struct error err = {0};
    const double before_us = clock_now_us();
    assert_ok(run_in(&config, "/run/lab/agent n1 printenv " LAB_WEATHER_BEGAN, &text, &err));
    const double began_us = strtod(text.all, NULL);
    assert_true(began_us >= before_us - 1 && began_us <= clock_now_us() + 1);
}

static void wrong_descriptions_are_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct text text = {0};
    struct lab_node twice[] = {{"a", 1}, {"a", 1}}, slash[] = {{"../x", 1}}, head[] = {{"head", 1}},
                    still[] = {{"a", 0}};
    struct lab_link self = {0, 0, 1};
    struct lab_config config = {.name = "t", .n = 2, .nodes = twice};
    assert_fails(run_in(&config, "true", &text, &err), ST_INVALID, "taken");
    config = (struct lab_config){.n = 1, .nodes = slash};
    assert_fails(run_in(&config, "true", &text, &err), ST_INVALID, "../x");
    config = (struct lab_config){.n = 1, .nodes = head};
    assert_fails(run_in(&config, "true", &text, &err), ST_INVALID, "taken");
    config = (struct lab_config){.n = 1, .nodes = still};
    assert_fails(run_in(&config, "true", &text, &err), ST_INVALID, "Gbit/s");
    config = (struct lab_config){.n = 0};
    assert_fails(run_in(&config, "true", &text, &err), ST_INVALID, "250");
    config = (struct lab_config){.n = 4, .nodes = four, .n_links = 1, .links = &self};
    assert_fails(run_in(&config, "true", &text, &err), ST_INVALID, "link 0");
}

static void a_command_runs_where_it_was_called(void **state) {
    need_lab(state);
    struct lab_config config = {.name = "syncopate-where", .n = 1, .nodes = four};
    struct error err = {0};
    char here[PATH_MAX], there[PATH_MAX] = "";
    int code;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(test_dir()), 0);
    lab_down(config.name, &err); /* of a run that was killed */
    assert_ok(lab_up(&config, &err));
    const char *const argv[] = {"sh", "-c", "pwd >where", NULL};
    for (int head = 0; head < 2; head++) {
        assert_ok(lab_exec(config.name, head ? NULL : "n1", argv, &code, &err));
        assert_int_equal(code, 0);
        FILE *file = fopen("where", "r");
        assert_non_null(file);
        assert_non_null(fgets(there, sizeof there, file));
        fclose(file);
        unlink("where");
        there[strcspn(there, "\n")] = 0;
        assert_string_equal(there, test_dir());
    }
    assert_ok(lab_down(config.name, &err));
    assert_int_equal(chdir(here), 0);
}

static void missing_tools_are_named(void **state) {
    need_lab(state);
    struct error err = {0};
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere", 1);
    enum status status = lab_check(&err);
    setenv("PATH", path, 1);
    free(path);
    assert_fails(status, ST_ENVIRONMENT, "install iproute2");
}

static void without_root_the_message_says_so(void **state) {
    need_lab(state);
    pid_t child = fork();
    if (child == 0) {
        struct error err = {0};
        bool ok = setuid(65534) == 0 && lab_check(&err) == ST_ENVIRONMENT && strstr(ERROR_TEXT(&err), "needs root");
        _exit(ok ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void ignore_signal(int signal) {
    (void)signal;
}

static _Noreturn void be_a_caller(void) {
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = ignore_signal}, NULL);
    struct lab_config config = {.name = "t", .n = 4, .nodes = four};
    struct error err = {0};
    struct text text = {0};
    const char *script = "/run/lab/agent n2 'setsid sleep 9753' & (setsid sleep 9753 &); sleep 9753";
    run_in(&config, script, &text, &err);
    _exit(0);
}

static int count_lines(const char *command) {
    FILE *pipe = popen(command, "r");
    int n = 0;
    for (int c; pipe && (c = fgetc(pipe)) != EOF;)
        n += c == '\n';
    if (pipe)
        pclose(pipe);
    return n;
}

static void sigkill_of_the_caller_at_any_moment_leaves_nothing(void **state) {
    need_lab(state);
    struct rng rng;
    rng_seed(&rng, test_seed());
    int links = count_lines("ip -o link"), names = count_lines("ip netns list"),
        mounts = count_lines("cat /proc/mounts");
    for (int i = 0; i < 20; i++) {
        pid_t caller = fork();
        if (caller == 0)
            be_a_caller();
        clock_sleep_us(rng_between(&rng, 0, 120000));
        kill(caller, SIGKILL);
        assert_true(descendants_vanish());
    }
    assert_int_equal(count_lines("ip -o link"), links);
    assert_int_equal(count_lines("ip netns list"), names);
    assert_int_equal(count_lines("cat /proc/mounts"), mounts);
    assert_int_equal(entries_with("/run/lab", ""), 0);
    assert_int_equal(entries_with("/run/tmp", ""), 0);
}

static void a_lab_that_stays_can_be_used_and_ended(void **state) {
    need_lab(state);
    struct lab_config config = {.name = "syncopate-test", .n = 3, .nodes = four};
    struct error err = {0};
    lab_down(config.name, &err);
    assert_ok(lab_up(&config, &err));
    assert_fails(lab_up(&config, &err), ST_CONFLICT, "up already");
    const char *const right[] = {"sh", "-c", "test \"$(hostname)\" = \"$1\" && exit 41", "it's $0", "n2", NULL};
    const char *const head[] = {"sh", "-c", "test \"$(hostname) $TMPDIR\" = 'head /run/tmp' && kill -9 $$", NULL};
    int code = 0;
    assert_ok(lab_exec(config.name, "n2", right, &code, &err));
    assert_int_equal(code, 41);
    assert_ok(lab_exec(config.name, NULL, head, &code, &err));
    assert_int_equal(code, 128 + SIGKILL);
    assert_fails(lab_exec(config.name, "n4", right, &code, &err), ST_NOT_FOUND, "no node \"n4\"");
    const char *const nothing[] = {"/no/such/program", NULL};
    assert_ok(lab_exec(config.name, NULL, nothing, &code, &err));
    assert_int_equal(code, 127);
    const char *const done[] = {"true", NULL};
    failing_fork = 1;
    assert_fails(lab_exec(config.name, NULL, done, &code, &err), ST_ENVIRONMENT, "cannot start another process");
    failing_fork = 2; /* within the lab: the command was not run, so it is not done */
    assert_ok(lab_exec(config.name, NULL, done, &code, &err));
    assert_int_equal(code, 126);
    failing_fork = 0;
    struct arena arena = {0};
    struct lab_info *labs;
    size_t n, i = 0;
    assert_ok(lab_list(&arena, &labs, &n, &err));
    while (i < n && strcmp(labs[i].name, config.name) != 0)
        i++;
    assert_true(i < n);
    assert_int_equal(labs[i].n, 3);
    assert_string_equal(labs[i].nodes[2], "n3");
    assert_int_equal(kill(labs[i].pid, 0), 0);
    assert_ok(lab_down(config.name, &err));
    char root[64]; /* a process that only waits to be reaped has none */
    snprintf(root, sizeof root, "/proc/%d/root/", (int)labs[i].pid);
    assert_int_equal(access(root, F_OK), -1);
    assert_fails(lab_down(config.name, &err), ST_NOT_FOUND, "no lab");
    arena_release(&arena);
}

static void a_state_file_without_its_lab_is_swept(void **state) {
    need_lab(state);
    struct lab_config config = {.name = "syncopate-stale", .n = 1, .nodes = four};
    struct error err = {0};
    /* A live pid with another start time: a recycled one. */
    char text[256];
    snprintf(text, sizeof text,
             "{\"schema\":\"syncopate.lab/1\",\"name\":\"%s\",\"pid\":%d,\"start_ticks\":1,\"nodes\":[]}", config.name,
             (int)getpid());
    mkdir(LAB_STATE, 0755);
    FILE *file = fopen(LAB_STATE "/lab-syncopate-stale.json", "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    struct arena arena = {0};
    struct lab_info *labs;
    size_t n;
    assert_ok(lab_list(&arena, &labs, &n, &err));
    for (size_t i = 0; i < n; i++)
        assert_string_not_equal(labs[i].name, config.name);
    assert_int_equal(access(LAB_STATE "/lab-syncopate-stale.json", F_OK), -1);
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_their_names_and_reach_each_other),
        cmocka_unit_test(nothing_outside_is_reachable_or_visible),
        cmocka_unit_test(links_run_at_their_rates),
        cmocka_unit_test(nodes_share_a_nic_whatever_their_connections),
        cmocka_unit_test(tcp_is_the_same_in_every_lab),
        cmocka_unit_test(rates_change_as_the_weather_says),
        cmocka_unit_test(programs_on_nodes_know_when_the_weather_began),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(a_command_runs_where_it_was_called),
        cmocka_unit_test(missing_tools_are_named),
        cmocka_unit_test(without_root_the_message_says_so),
        cmocka_unit_test(sigkill_of_the_caller_at_any_moment_leaves_nothing),
        cmocka_unit_test(a_lab_that_stays_can_be_used_and_ended),
        cmocka_unit_test(a_state_file_without_its_lab_is_swept),
    };
    return cmocka_run_group_tests_name("lab", tests, setup, NULL);
}
