/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A TCP program that knows nothing of RDMA: `tcp serve PORT` sends back what one client sends; `tcp call PORT` is that client, and
 * compares the bytes. It uses the plain functions that librspreload replaces.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TOTAL = 1 << 18, PIECE = 4096 };

static int tcp_socket(const char *port, struct sockaddr_in *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		err(1, "socket");
	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_port = htons(atoi(port)),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return fd;
}

static void send_all(int fd, const unsigned char *bytes, size_t len)
{
	ssize_t n;

	for (size_t at = 0; at < len; at += n) {
		n = send(fd, bytes + at, len - at, 0);
		if (n <= 0)
			err(1, "send");
	}
}

static void receive_all(int fd, unsigned char *bytes, size_t len)
{
	ssize_t n;

	for (size_t at = 0; at < len; at += n) {
		n = recv(fd, bytes + at, len - at, 0);
		if (n <= 0)
			err(1, "recv");
	}
}

static void serve(const char *port)
{
	unsigned char bytes[PIECE];
	struct sockaddr_in addr;
	int fd = tcp_socket(port, &addr), connection;
	size_t total = 0;
	ssize_t n;

	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		err(1, "listen");
	connection = accept(fd, NULL, NULL);
	if (connection < 0)
		err(1, "accept");
	while ((n = recv(connection, bytes, sizeof(bytes), 0)) > 0) {
		send_all(connection, bytes, n);
		total += n;
	}
	printf("echoed %zu bytes\n", total);
	close(connection);
	close(fd);
}

static void call(const char *port)
{
	unsigned char sent[PIECE], came[PIECE];
	struct sockaddr_in addr;
	int fd = tcp_socket(port, &addr);

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		err(1, "connect");
	for (size_t at = 0; at < TOTAL; at += PIECE) {
		for (size_t i = 0; i < PIECE; i++)
			sent[i] = random();
		send_all(fd, sent, PIECE);
		receive_all(fd, came, PIECE);
		if (memcmp(sent, came, PIECE))
			errx(1, "the bytes that came back differ");
	}
	puts("all bytes came back");
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "call"))
		call(argv[2]);
	else
		errx(2, "tcp serve|call PORT");
	return 0;
}
