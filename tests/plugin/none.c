/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A shared object that is no plug-in; or, with LOST, one that needs a function which nobody has. */
int uvd_nothing(void);
int uvd_lost(void);

int uvd_nothing(void)
{
	return LOST ? uvd_lost() : 0;
}
