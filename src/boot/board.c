/* SPDX-License-Identifier: BSD-3-Clause */
/* board.c - asking remote ranks what their board says, and answering. The page is read under the service's lock only.
 */
#include "board.h"

#include "boot_internal.h"

static struct wire_answer board_look(const struct boot *boot, const struct wire_ask *ask)
{
    struct wire_answer answer = {.request = ask->request, .answer = WIRE_NO_BOARD};
    if (boot->board) {
        answer.answer = (uint32_t)board_read(boot->board, ask->sequence, &answer.name);
        answer.posted = atom_load_acquire(&boot->board->posted);
    }
    return answer;
}

void board_asked(struct boot *boot, int from, const uint8_t *body, size_t bytes)
{
    struct wire_ask ask;
    if (!wire_ask_parse(body, bytes, &ask))
        return;
    struct wire_answer answer = board_look(boot, &ask);
    struct wire_out out = {NULL, 0, 0, false};
    wire_answer_write(&out, &answer);
    struct blob *blob = blob_from(WIRE_ANSWER, boot->generation, &out);
    link_send(boot, from, blob);
    blob_drop(blob);
}

void board_answered(struct boot *boot, const uint8_t *body, size_t bytes)
{
    struct wire_answer answer;
    if (!wire_answer_parse(body, bytes, &answer))
        return;
    for (struct ask *ask = boot->asks; ask; ask = ask->next)
        if (ask->request == answer.request) {
            ask->answer = answer;
            ask->answered = true;
            boot_changed(boot);
        }
}

void board_peer_gone(struct boot *boot, int rank)
{
    for (struct ask *ask = boot->asks; ask; ask = ask->next)
        if (ask->rank == rank)
            ask->lost = true;
}

void boot_set_board(struct boot *boot, const struct board_page *page)
{
    if (!boot || !service_alive(boot->service))
        return;
    pthread_mutex_lock(&boot->service->lock); /* readers hold it: none is left inside after this */
    boot->board = page;
    pthread_mutex_unlock(&boot->service->lock);
}

static quire_status_t ask_wait(struct boot *boot, struct ask *ask, uint64_t deadline)
{
    while (!ask->answered) {
        if (stop_seen(boot->stop) == STOP_FATAL)
            return stop_status(boot->stop);
        if (ask->lost || link_silent(boot, ask->rank))
            return quire_fail(QUIRE_ERR_LINK, "rank %d can't be asked what it is doing: it has left", ask->rank);
        if (deadline_passed(deadline))
            return quire_fail(QUIRE_ERR_TIMEOUT, "rank %d did not say in time what it is doing", ask->rank);
        boot_sleep(boot, deadline);
    }
    return QUIRE_OK;
}

quire_status_t boot_ask_board(struct boot *boot, int rank, uint64_t sequence, enum board_answer *answer,
                              struct op_name *name, uint64_t *posted, uint64_t deadline)
{
    quire_status_t st = boot_usable(boot);
    if (st != QUIRE_OK)
        return st;
    if (rank < 0 || rank >= boot->size)
        return quire_fail(QUIRE_ERR_INVALID_ARGUMENT, "rank %d is not in 0..%d", rank, boot->size - 1);
    pthread_mutex_lock(&boot->service->lock);
    struct ask ask = {.next = boot->asks, .request = boot->service->next_id++, .rank = rank};
    struct wire_ask question = {ask.request, sequence};
    boot->asks = &ask; // cppcheck-suppress autoVariables
    if (rank == boot->rank) {
        ask.answer = board_look(boot, &question);
        ask.answered = true;
    } else {
        struct wire_out out = {NULL, 0, 0, false};
        wire_ask_write(&out, &question);
        struct blob *blob = blob_from(WIRE_ASK, boot->generation, &out);
        if (!link_send(boot, rank, blob))
            st = quire_fail(QUIRE_ERR_RESOURCE, "no memory to ask rank %d", rank);
        blob_drop(blob);
    }
    if (st == QUIRE_OK)
        st = ask_wait(boot, &ask, deadline);
    for (struct ask **at = &boot->asks; *at; at = &(*at)->next)
        if (*at == &ask) {
            *at = ask.next;
            break;
        }
    pthread_mutex_unlock(&boot->service->lock);
    if (st != QUIRE_OK)
        return st;
    /* A rank without a board has started nothing. */
    *answer = ask.answer.answer == WIRE_NO_BOARD ? BOARD_BEHIND : (enum board_answer)ask.answer.answer;
    if (*answer == BOARD_FOUND)
        *name = ask.answer.name;
    *posted = ask.answer.posted;
    return QUIRE_OK;
}
