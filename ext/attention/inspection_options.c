/*
** inspection_options.c: the defaults of the options that all functions of this
** folder have in common.
*/
#include "attention.h"

const inspection_options inspection_defaults = {
    .model = NULL, .text_b = NULL, .special = 1, .temperature = 1.0};
