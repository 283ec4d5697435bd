/* Encoders: encodings of gradients that no all-reduce can add up.
 *
 * f16 and bf16 are element types: what travels in them is summed as any gradient is. What an encoder makes is no list
 * of numbers that can be added, so its messages go another way, and devices decode and add. An encoder has a figure,
 * which the strategy gives beside the encoder's name:
 *   int8   block_size. Every block of so many elements is 8-bit integers and an f32 scale, its largest size over 127
 *          (Dettmers, 8-Bit Approximations for Parallelism in Deep Learning, 2016). An all-to-all brings each device
 *          its part of all gradients, encoded. The device decodes and adds them in f32, and encodes the sum. An
 *          all-gather brings all parts to all devices (Wang et al., ZeRO++, 2023, section 3.3). On n devices
 *          (n - 1) / n of the encoded bytes go each way twice, as in a ring all-reduce.
 *
 *   topk   part. Of a message's elements the so many-th part, one at least, that are largest in size travel, each with
 *          its place (Aji and Heafield, Sparse Communication for Distributed Gradient Descent, 2017). An all-gather
 *          brings those of all devices to all, which add them: the bytes grow with the number of devices. What a device
 *          does not send stays there, and is added to its gradient of the next iteration (error feedback; Stich,
 *          Cordonnier and Jaggi, 2018), so that nothing is lost for ever.
 *
 *   powersgd  rank. A gradient of shape [m, ...] is a matrix M of m rows of n, and travels as the product of P, m x
 * rank, and Q, n x rank (Vogels, Karimireddy and Jaggi, PowerSGD, 2019, algorithms 1 and 2). P = M Q, with the Q of the
 * iteration before, is added over all devices. Its columns are made orthogonal. Then Q = M^T P is added over all
 * devices, and P Q^T is the sum. So there are two all-reduces in a message, of all its P and of all its Q, in f32. What
 * a device's M differs by from the mean that came back is added to its gradient of the next iteration. Variables of one
 * axis or none travel with P, as they are.
 *
 * A group holds variables of one encoder with one figure. Its partition_bytes counts bytes before encoding. */
#ifndef STRATEGY_ENCODER_H
#define STRATEGY_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "strategy/strategy.h"

/* A gradient as powersgd reads it. */
struct encoder_matrix {
    uint64_t rows, columns; /* 0 columns: it is no matrix */
};
struct encoder_matrix encoder_matrix(const struct variable *variable);

/* powersgd: how many elements of f32 a variable has in the first all-reduce, and in the second. */
uint64_t encoder_first_elements(const struct variable *variable, double rank);
uint64_t encoder_second_elements(const struct variable *variable, double rank);

enum { ENCODER_SCALE_BYTES = sizeof(float), ENCODER_PLACED_BYTES = sizeof(uint32_t) + sizeof(float) };

/* What a description says of an encoder beside its name. */
struct encoder_figure {
    const char *name;
    double least, most, usual; /* usual: where the description does not say it */
    bool whole;
};

/* NULL: it is no encoder. */
const struct encoder_figure *encoder_figure(enum encoding encoding);

/* "int8 in blocks of 256"; `size` of 64 is enough. The name alone of what is no encoder. */
const char *encoder_text(enum encoding encoding, double figure, char *out, size_t size);

/* topk: how many of `elements` elements travel. */
uint64_t encoder_kept(double part, uint64_t elements);

/* int8 and topk: the bytes that `elements` elements have when they are encoded; with topk those of one device. */
uint64_t encoder_bytes(enum encoding encoding, double figure, uint64_t elements);

/* int8: the bytes of the largest part, when so many elements are cut into n parts of whole blocks. */
uint64_t encoder_part_bytes(enum encoding encoding, double figure, uint64_t elements, uint32_t n);

/* The member "encoding" of a variable or of an entry of "each_shard": a word, or an object of an encoder. */
enum status encoder_read(const struct json_at *owner, struct variable_sync *out, struct error *err);
bool encoder_write(const struct variable_sync *sync, cJSON *owner); /* false when memory is out */

/* The rules about an encoder of one variable, or part of one. Fails: ST_INVALID. */
enum status encoder_check(const struct strategy *strategy, const struct variable *variable,
                          const struct variable_sync *part, struct error *err);

/* One encoder a merge group. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status encoder_check_groups(const struct strategy *strategy, const struct model *model, struct error *err);

#endif
