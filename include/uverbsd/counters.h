/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The counters of a port, which sysfs shows in ports/N/counters and ports/N/hw_counters. They only grow. */
#ifndef UVERBSD_COUNTERS_H
#define UVERBSD_COUNTERS_H

/*
 * A packet is a part of a message of at most the path MTU, or the request of an RDMA READ or an atomic operation. The
 * headers do not count, nor do acknowledgements. On the wire each packet counts that was sent, or received for a QP:
 * retransmissions, duplicates and acknowledgements, too.
 */
enum uvd_port_counter {
	UVD_PORT_XMIT_WORDS, /* payload, each message rounded up to units of 4 bytes */
	UVD_PORT_RCV_WORDS,
	UVD_PORT_UNICAST_XMIT, /* packets, as the next five */
	UVD_PORT_UNICAST_RCV,
	UVD_PORT_MULTICAST_XMIT,
	UVD_PORT_MULTICAST_RCV, /* a datagram counts once for each QP of the port that receives it */
	UVD_PORT_XMIT_DISCARDS, /* packets that should have left while the port was down, or that the kernel refused */
	UVD_PORT_LINK_DOWNED, /* times */
	UVD_PORT_RNR_RCVD, /* RNR NAKs that the port's requesters got */
	UVD_PORT_RNR_SENT, /* RNR NAKs that its responders sent */
	UVD_PORT_RETRIES, /* of requests that got no answer in time */
	UVD_PORT_RETRY_EXCEEDED, /* requests that failed with IBV_WC_RETRY_EXC_ERR */
	UVD_PORT_RNR_RETRY_EXCEEDED, /* requests that failed with IBV_WC_RNR_RETRY_EXC_ERR */
	UVD_PORT_SENDS, /* messages that were sent by a SEND operation */
	UVD_PORT_RECEIVES, /* messages that took a receive */
	/* These need a wire: */
	UVD_PORT_DUPLICATES, /* packets of requests that responders had carried out before */
	UVD_PORT_OUT_OF_SEQUENCE, /* NAKs of responders that missed a packet */
	UVD_PORT_SEQUENCE_NAKS, /* such NAKs that requesters got */
	UVD_PORT_ANSWERS_DEFERRED, /* packets of answers that found others waiting */
	UVD_PORT_COUNTERS
};

#endif
