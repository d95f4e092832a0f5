/*
** crew.c: the threads of a forward pass, and when to stop.
*/
#include "forward.h"

crew crew_of_team(const team_member *member, stop_signal *signal, const kernels *set) {
  crew c = {*member, member->rank == 0, signal, set};
  return c;
}

crew crew_alone(const team_member *member, stop_signal *signal, const kernels *set) {
  crew c = {{NULL, 0, 1}, member->rank == 0, signal, set};
  return c;
}

void crew_barrier(crew *c) {
  team_barrier(&c->member);
}

unsigned crew_arrive(crew *c) {
  return team_arrive(&c->member);
}

void crew_wait(crew *c, unsigned passed) {
  team_wait(&c->member, passed);
}

void crew_share(const crew *c, size_t count, size_t grain, size_t *first, size_t *last) {
  team_share(&c->member, count, grain, first, last);
}

void crew_poll(crew *c) {
  stop_signal *s = c->signal;
  if (c->may_poll && s->interrupted != NULL && s->interrupted(s->user))
    atomic_store_explicit(&s->stop, 1, memory_order_relaxed);
}

int crew_stopped(const crew *c) {
  return atomic_load_explicit(&c->signal->stop, memory_order_relaxed);
}

int crew_should_stop(crew *c) {
  crew_poll(c);
  crew_barrier(c);
  return crew_stopped(c);
}
