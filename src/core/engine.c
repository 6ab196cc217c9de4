/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine: what exists before any device. */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "account/account.h"
#include "client/client.h"
#include "core/internal.h"

/*
 * glibc keeps freed small chunks in lists of their own ("fastbins"), and empties all lists whenever a chunk is freed
 * beside much free memory. A client that destroys objects in certain orders would cause that at each destroy, and it
 * costs as much as the destroy itself. A limit of 0 turns the lists off.
 */
static void free_small_chunks_at_once(void)
{
	mallopt(M_MXFAST, 0);
}

static int engine_add_builtin(struct uvd_engine *engine)
{
	int err = 0;

	for (unsigned int i = 0; engine->builtin && engine->builtin[i] && !err; i++)
		err = uvd_plugins_add_builtin(engine->plugins, engine->builtin[i]);
	return err;
}

int uvd_engine_init(struct uvd_engine *engine, const struct uvd_plugin *const *plugins,
		    const struct uvd_account_limits *limits, struct uvd_log *log)
{
	int err = -ENOMEM;

	free_small_chunks_at_once();
	memset(engine, 0, sizeof(*engine));
	engine->builtin = plugins;
	engine->log = log;
	engine->accounts = limits ? uvd_accounts_new(limits, log) : NULL;
	if (limits && !engine->accounts)
		return -ENOMEM;
	engine->mms = uvd_mm_table_new();
	if (!engine->mms)
		goto free_accounts;
	engine->plugins = uvd_plugins_new(log);
	if (!engine->plugins)
		goto free_mms;
	err = engine_add_builtin(engine);
	if (err)
		goto free_plugins;
	pthread_mutex_init(&engine->plugins_lock, NULL);
	INIT_LIST_HEAD(&engine->devices);
	uvd_ucaps_init(&engine->ucaps);
	uvd_observers_init(&engine->observers);
	return 0;
free_plugins:
	uvd_plugins_free(engine->plugins);
free_mms:
	uvd_mm_table_free(engine->mms);
free_accounts:
	uvd_accounts_free(engine->accounts);
	return err;
}

int uvd_engine_set_plugins(struct uvd_engine *engine, struct uvd_plugins *plugins)
{
	uvd_plugins_free(engine->plugins);
	engine->plugins = plugins;
	return engine_add_builtin(engine);
}

void uvd_engine_fini(struct uvd_engine *engine)
{
	uvd_observers_fini(&engine->observers);
	uvd_ucaps_fini(&engine->ucaps);
	uvd_engine_texts_fini(engine);
	uvd_plugins_free(engine->plugins);
	pthread_mutex_destroy(&engine->plugins_lock);
	uvd_mm_table_free(engine->mms);
	uvd_accounts_free(engine->accounts);
}
