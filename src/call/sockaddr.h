/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Socket addresses as text. Any thread may call these functions. */
#ifndef UVD_CALL_SOCKADDR_H
#define UVD_CALL_SOCKADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UVD_SOCKADDR_TEXT = 128 };

/* Makes a socket address of its text. Returns its size, or 0: the text is none, or there is no room for it. */
size_t uvd_sockaddr_parse(const char *text, uint8_t *to, size_t room);
/* The reverse. Returns false if the family is not known. */
bool uvd_sockaddr_format(const uint8_t *data, size_t len, char text[UVD_SOCKADDR_TEXT]);

#endif
