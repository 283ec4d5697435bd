/* CLOCK_MONOTONIC for durations, CLOCK_REALTIME only for stamps that people read. Sleeps have an absolute end, so that
 * a signal in between neither shortens nor lengthens them. */
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

double clock_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void clock_sleep_us(double us) {
    if (!(us > 0))
        return;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double ns = fmin(us, 1e15) * 1e3;
    const long long whole = (long long)ns + end.tv_nsec;
    end.tv_sec += (time_t)(whole / 1000000000);
    end.tv_nsec = (long)(whole % 1000000000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        continue;
}

void clock_utc(char *out, size_t n) {
    clock_utc_after(0, out, n);
}

double clock_real_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void clock_utc_after(double us, char *out, size_t n) {
    static const double century_us = 100 * 365.25 * 86400e6;
    struct timespec now;
    struct tm utc;
    char day[64];
    clock_gettime(CLOCK_REALTIME, &now);
    const long long ms = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000 +
                         (long long)(fmax(-century_us, fmin(us, century_us)) / 1e3);
    const time_t seconds = (time_t)((ms - (ms % 1000 + 1000) % 1000) / 1000);
    gmtime_r(&seconds, &utc);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, n, "%s.%03lldZ", day, (ms % 1000 + 1000) % 1000);
}

static int number_at(const char *digits, int n) {
    int value = 0;
    for (int i = 0; i < n; i++)
        value = 10 * value + digits[i] - '0';
    return value;
}

bool clock_is_utc(const char *text) {
    static const char form[] = "0000-00-00T00:00:00.000Z", days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    size_t i = 0;
    while (form[i] && (form[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i]))
        i++;
    if (form[i] || text[i])
        return false;
    const int year = number_at(text, 4), month = number_at(text + 5, 2), day = number_at(text + 8, 2);
    if (month < 1 || month > 12)
        return false;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day >= 1 && day <= days[month - 1] + (leap && month == 2) && number_at(text + 11, 2) < 24 &&
           number_at(text + 14, 2) < 60 && number_at(text + 17, 2) < 60;
}
