-- A database as revision 0015 left it; never edited.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0015');
CREATE TABLE answers (
	user_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	status INTEGER NOT NULL, 
	content_type TEXT NOT NULL, 
	body TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_answers PRIMARY KEY (user_id, "key")
);
CREATE TABLE boards (
	board TEXT NOT NULL, 
	next_id BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	created_at TEXT NOT NULL, 
	CONSTRAINT pk_boards PRIMARY KEY (board)
);
CREATE TABLE bridge_states (
	user_id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_bridge_states PRIMARY KEY (user_id)
);
CREATE TABLE budgets (
	scope TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	window TEXT NOT NULL, 
	limit_usd FLOAT, 
	limit_tokens BIGINT, 
	CONSTRAINT pk_budgets PRIMARY KEY (scope, "key", window)
);
CREATE TABLE channel_buttons (
	"key" TEXT NOT NULL, 
	card_id TEXT NOT NULL, 
	verb TEXT NOT NULL, 
	argument TEXT NOT NULL, 
	who TEXT NOT NULL, 
	CONSTRAINT pk_channel_buttons PRIMARY KEY ("key")
);
CREATE TABLE channel_cards (
	card_id TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	chat_id TEXT NOT NULL, 
	message_id TEXT, 
	thread_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	body TEXT NOT NULL, 
	state TEXT NOT NULL, 
	claim TEXT, 
	result TEXT, 
	expires_at TEXT NOT NULL, 
	CONSTRAINT pk_channel_cards PRIMARY KEY (card_id)
);
CREATE TABLE channel_codes (
	sha256 TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	role TEXT NOT NULL, 
	expires_at TEXT NOT NULL, 
	used_by TEXT, 
	CONSTRAINT pk_channel_codes PRIMARY KEY (sha256)
);
CREATE TABLE channel_guesses (
	channel TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	hour TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	CONSTRAINT pk_channel_guesses PRIMARY KEY (channel, user_id, hour)
);
CREATE TABLE channel_sent (
	channel TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	part INTEGER NOT NULL, 
	message_id TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_channel_sent PRIMARY KEY (channel, "key", part)
);
CREATE TABLE channel_updates (
	id INTEGER NOT NULL, 
	channel TEXT NOT NULL, 
	dedupe_key TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_channel_updates PRIMARY KEY (id)
);
CREATE TABLE channel_users (
	channel TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	role TEXT NOT NULL, 
	name TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_channel_users PRIMARY KEY (channel, user_id)
);
CREATE TABLE counters (
	base_key TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	CONSTRAINT pk_counters PRIMARY KEY (base_key)
);
INSERT INTO "counters" VALUES('telegram_5',1);
CREATE TABLE effects (
	thread_id TEXT NOT NULL, 
	call_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	class TEXT NOT NULL, 
	state TEXT NOT NULL, 
	intent_seq BIGINT, 
	outcome_seq BIGINT, 
	mark TEXT, 
	CONSTRAINT pk_effects PRIMARY KEY (thread_id, call_id), 
	CONSTRAINT fk_effects_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_effects_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id)
);
INSERT INTO "effects" VALUES('0123456789ab','c1','t_01j00000000000000000000000','write_file','branch','outcome',4,5,'step:c1');
CREATE TABLE executors (
	executor_id TEXT NOT NULL, 
	host TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	started_at TEXT NOT NULL, 
	heartbeat_at TEXT NOT NULL, 
	CONSTRAINT pk_executors PRIMARY KEY (executor_id)
);
CREATE TABLE inbox (
	id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	door TEXT NOT NULL, 
	dedupe_key TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	sender TEXT NOT NULL, 
	body TEXT NOT NULL, 
	state TEXT NOT NULL, 
	turn_id TEXT, 
	received_at TEXT NOT NULL, 
	CONSTRAINT pk_inbox PRIMARY KEY (id), 
	CONSTRAINT fk_inbox_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_inbox_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id), 
	CONSTRAINT uq_inbox_door_dedupe_key UNIQUE (door, dedupe_key)
);
INSERT INTO "inbox" VALUES('i_01j00000000000000000000000','0123456789ab','cli','k1','message','{"id":"me","name":"Me"}','{"content":[{"type":"text","text":"Grüße"}]}','done','t_01j00000000000000000000000','2026-11-20T06:53:53.809810+00:00');
CREATE TABLE journal (
	thread_id TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	turn_id TEXT, 
	epoch BIGINT NOT NULL, 
	v INTEGER NOT NULL, 
	type TEXT NOT NULL, 
	at TEXT NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_journal PRIMARY KEY (thread_id, seq), 
	CONSTRAINT fk_journal_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_journal_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id)
);
INSERT INTO "journal" VALUES('0123456789ab',1,'t_01j00000000000000000000000',1,1,'turn_started','2026-11-20T06:53:53.814315+00:00','{"n":1,"inbox":["i_01j00000000000000000000000"],"kind":"user","model":"anthropic:claude","mode":"normal"}');
INSERT INTO "journal" VALUES('0123456789ab',2,'t_01j00000000000000000000000',1,1,'user','2026-11-20T06:53:53.818516+00:00','{"content":[{"type":"text","text":"Grüße"}],"sender":{"id":"me","name":"Me","door":"cli"},"steer":false}');
INSERT INTO "journal" VALUES('0123456789ab',3,'t_01j00000000000000000000000',1,1,'assistant','2026-11-20T06:53:53.821237+00:00','{"content":[{"type":"thinking","thinking":"hm","signature":"s","origin":"anthropic:claude"},{"type":"tool_use","id":"c1","name":"write_file","input":{"path":"a","content":"b"}}],"stop_reason":"tool_use","model":"anthropic:claude","usage":{"input_tokens":10,"output_tokens":5,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"model_calls":1,"tool_calls":0,"cost":0.001,"estimated":false,"subagents":null}}');
INSERT INTO "journal" VALUES('0123456789ab',4,'t_01j00000000000000000000000',1,1,'tool_intent','2026-11-20T06:53:53.823426+00:00','{"call":"c1","tool":"write_file","input":{"path":"a","content":"b"},"class":"branch","mark":"step:c1","key":null}');
INSERT INTO "journal" VALUES('0123456789ab',5,'t_01j00000000000000000000000',1,1,'tool_outcome','2026-11-20T06:53:53.825965+00:00','{"call":"c1","status":"ok","content":[{"type":"text","text":"written"}],"truncated":false,"ms":3,"blob":null}');
INSERT INTO "journal" VALUES('0123456789ab',6,'t_01j00000000000000000000000',1,1,'assistant','2026-11-20T06:53:53.828681+00:00','{"content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","model":"anthropic:claude","usage":{"input_tokens":20,"output_tokens":2,"model_calls":1,"cost":null}}');
INSERT INTO "journal" VALUES('0123456789ab',7,'t_01j00000000000000000000000',1,1,'turn_ended','2026-11-20T06:53:53.830607+00:00','{"state":"done","stop_reason":"end_turn","usage":{},"snapshot":"s_01j00000000000000000000000","error":null}');
CREATE TABLE leases (
	thread_id TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	holder TEXT, 
	expires_at TEXT NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (thread_id), 
	CONSTRAINT fk_leases_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id)
);
INSERT INTO "leases" VALUES('0123456789ab',1,NULL,'2026-11-20T07:03:53.803000+00:00');
CREATE TABLE memory_versions (
	id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	workspace TEXT NOT NULL, 
	body TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_memory_versions PRIMARY KEY (id)
);
INSERT INTO "memory_versions" VALUES(1,'','/home/me/project','Prefers tabs.','2026-11-20T09:00:00.123456+00:00');
CREATE TABLE meta (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_meta PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('created_at','2026-11-20T06:53:53.785872+00:00');
CREATE TABLE notifications (
	id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	body TEXT NOT NULL, 
	content TEXT NOT NULL, 
	wakes BOOLEAN NOT NULL, 
	state TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	CONSTRAINT pk_notifications PRIMARY KEY (id), 
	CONSTRAINT fk_notifications_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT uq_notifications_thread_id_source_key UNIQUE (thread_id, source, "key")
);
CREATE TABLE outbox (
	id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	turn_id TEXT, 
	door TEXT NOT NULL, 
	address TEXT NOT NULL, 
	part INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	dedupe_key TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	next_at TEXT, 
	receipt TEXT, 
	last_error TEXT, 
	CONSTRAINT pk_outbox PRIMARY KEY (id), 
	CONSTRAINT fk_outbox_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_outbox_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id), 
	CONSTRAINT uq_outbox_door_dedupe_key_part UNIQUE (door, dedupe_key, part)
);
CREATE TABLE outcomes (
	id INTEGER NOT NULL, 
	thread_id TEXT NOT NULL, 
	turn_id TEXT, 
	agent TEXT NOT NULL, 
	model TEXT NOT NULL, 
	files TEXT NOT NULL, 
	state TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_outcomes PRIMARY KEY (id), 
	CONSTRAINT fk_outcomes_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id)
);
INSERT INTO "outcomes" VALUES(1,'0123456789ab','t_01j00000000000000000000000','bowerbird','anthropic:claude-sonnet-4-5','{"/a.txt":""}','open','2026-11-29T03:00:00.000000+00:00');
CREATE TABLE permission_rules (
	id INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	target TEXT NOT NULL, 
	rule TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_permission_rules PRIMARY KEY (id), 
	CONSTRAINT uq_permission_rules_owner_scope_target_rule UNIQUE (owner, scope, target, rule)
);
INSERT INTO "permission_rules" VALUES(1,'','workspace','/home/ada/project','bash(git push *)','ada','2026-11-23T20:24:54.239285+00:00');
CREATE TABLE provider_messages (
	id INTEGER NOT NULL, 
	session_id TEXT NOT NULL, 
	role TEXT NOT NULL, 
	content TEXT NOT NULL, 
	timestamp TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	CONSTRAINT pk_provider_messages PRIMARY KEY (id)
);
CREATE TABLE provider_sessions (
	session_id TEXT NOT NULL, 
	agent_name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	native_session_id TEXT, 
	thread_id TEXT, 
	branch_id TEXT, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	CONSTRAINT pk_provider_sessions PRIMARY KEY (session_id)
);
CREATE TABLE push_subscriptions (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	credential TEXT NOT NULL, 
	endpoint TEXT NOT NULL, 
	p256dh TEXT NOT NULL, 
	auth TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	CONSTRAINT pk_push_subscriptions PRIMARY KEY (id), 
	CONSTRAINT uq_push_subscriptions_endpoint UNIQUE (endpoint)
);
CREATE TABLE quarantine (
	id INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	raw TEXT NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_quarantine PRIMARY KEY (id)
);
CREATE TABLE reservations (
	id INTEGER NOT NULL, 
	scope TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	turn_id TEXT, 
	usd FLOAT, 
	tokens BIGINT, 
	state TEXT NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id)
);
CREATE TABLE scheduled_runs (
	task_id TEXT NOT NULL, 
	due TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	started_at TEXT NOT NULL, 
	ended_at TEXT, 
	status TEXT NOT NULL, 
	cost FLOAT, 
	tries INTEGER NOT NULL, 
	retry_at TEXT, 
	error TEXT, 
	CONSTRAINT pk_scheduled_runs PRIMARY KEY (task_id, due), 
	CONSTRAINT fk_scheduled_runs_task_id FOREIGN KEY(task_id) REFERENCES scheduled_tasks (id)
);
CREATE TABLE scheduled_tasks (
	id TEXT NOT NULL, 
	prompt TEXT NOT NULL, 
	type TEXT NOT NULL, 
	value TEXT NOT NULL, 
	tz TEXT, 
	channel TEXT, 
	chat_id TEXT, 
	owner TEXT, 
	workspace TEXT, 
	model_tier TEXT, 
	catch_up TEXT NOT NULL, 
	notify TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	made_by TEXT, 
	active BOOLEAN NOT NULL, 
	paused BOOLEAN NOT NULL, 
	last_run TEXT, 
	next_run TEXT, 
	missed INTEGER NOT NULL, 
	last_status TEXT, 
	fail_count INTEGER NOT NULL, 
	CONSTRAINT pk_scheduled_tasks PRIMARY KEY (id)
);
INSERT INTO "scheduled_tasks" VALUES('a1b2c3d4','Say hello','cron','0 8 * * *',NULL,'telegram','123456',NULL,NULL,NULL,'one','silent','2026-02-24T10:00:00.000000+00:00',NULL,1,0,NULL,NULL,0,NULL,0);
CREATE TABLE session_texts (
	thread_id TEXT NOT NULL, 
	part INTEGER NOT NULL, 
	upto BIGINT NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_session_texts PRIMARY KEY (thread_id, part), 
	CONSTRAINT fk_session_texts_thread_id_sessions FOREIGN KEY(thread_id) REFERENCES sessions (thread_id)
);
INSERT INTO "session_texts" VALUES('0123456789ab',0,7,'hallo
welt');
CREATE TABLE sessions (
	thread_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	channel TEXT, 
	chat_id TEXT, 
	counter INTEGER NOT NULL, 
	owner TEXT, 
	title TEXT, 
	preset TEXT, 
	system_prompt TEXT, 
	flags TEXT NOT NULL, 
	thinking_effort TEXT, 
	auto_approve BOOLEAN NOT NULL, 
	workspace TEXT, 
	branch_id TEXT, 
	status TEXT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	parent_thread_id TEXT, 
	parent_seq BIGINT, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	deleted_at TEXT, changed_files INTEGER DEFAULT '0' NOT NULL, messages INTEGER DEFAULT '0' NOT NULL, bytes BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (thread_id), 
	CONSTRAINT fk_sessions_parent_thread_id FOREIGN KEY(parent_thread_id) REFERENCES sessions (thread_id)
);
INSERT INTO "sessions" VALUES('0123456789ab','cli',NULL,NULL,0,NULL,NULL,NULL,NULL,'{}',NULL,0,NULL,NULL,'idle',7,NULL,NULL,'2026-11-20T06:53:53.792748+00:00','2026-11-20T06:53:53.792759+00:00',NULL,3,2,1129);
INSERT INTO "sessions" VALUES('0123456789ab.sub0','subagent',NULL,NULL,0,NULL,NULL,NULL,NULL,'{}',NULL,0,NULL,NULL,'finished',0,NULL,NULL,'2026-11-20T06:53:53.792748+00:00','2026-11-20T06:53:53.792759+00:00',NULL,3,0,1129);
INSERT INTO "sessions" VALUES('0123456789ab.team.ann','teammate',NULL,NULL,0,NULL,NULL,NULL,NULL,'{}',NULL,0,NULL,NULL,'idle',0,NULL,NULL,'2026-11-20T06:53:53.792748+00:00','2026-11-20T06:53:53.792759+00:00',NULL,3,2,1129);
CREATE TABLE snapshots (
	snapshot_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	branch_id TEXT NOT NULL, 
	layer INTEGER, 
	paths INTEGER NOT NULL, 
	bytes BIGINT NOT NULL, 
	created_at TEXT NOT NULL, 
	CONSTRAINT pk_snapshots PRIMARY KEY (snapshot_id), 
	CONSTRAINT fk_snapshots_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_snapshots_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id)
);
INSERT INTO "snapshots" VALUES('s_01j00000000000000000000000','0123456789ab','t_01j00000000000000000000000',7,'b_01j00000000000000000000000',1,1,1,'2026-11-20T06:53:53.832310+00:00');
CREATE TABLE subagents (
	parent TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	thread_id TEXT NOT NULL, 
	root TEXT NOT NULL, 
	root_turn TEXT NOT NULL, 
	state TEXT NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_subagents PRIMARY KEY (parent, number), 
	CONSTRAINT fk_subagents_parent FOREIGN KEY(parent) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_subagents_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT uq_subagents_thread_id UNIQUE (thread_id)
);
INSERT INTO "subagents" VALUES('0123456789ab',0,'0123456789ab.sub0','0123456789ab','t_1','finished','{"parent":"0123456789ab","number":0,"session":"0123456789ab.sub0","root":"0123456789ab","root_turn":"t_1","turn":"t_1","call":"call_1","index":0,"name":"main_sub0","parent_branch":"b_1","fork":"b_2","snapshot":"s_1","task":"look","agent_type":"general","depth":1,"created":"2026-11-20T06:53:53.792748+00:00","model":"","state":"finished","result":"done","error":null,"usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"model_calls":0,"tool_calls":0,"cost":0.0,"estimated":false,"subagents":null},"ended":"2026-11-20T06:53:53.792748+00:00","tool_count":0,"elapsed":0.0,"checks":null,"baseline":null}');
CREATE TABLE task_edges (
	board TEXT NOT NULL, 
	blocker BIGINT NOT NULL, 
	blocked BIGINT NOT NULL, 
	CONSTRAINT pk_task_edges PRIMARY KEY (board, blocker, blocked), 
	CONSTRAINT fk_task_edges_board FOREIGN KEY(board) REFERENCES boards (board)
);
CREATE TABLE tasks (
	board TEXT NOT NULL, 
	id BIGINT NOT NULL, 
	subject TEXT NOT NULL, 
	description TEXT NOT NULL, 
	status TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	active_form TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	session TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	CONSTRAINT pk_tasks PRIMARY KEY (board, id), 
	CONSTRAINT fk_tasks_board FOREIGN KEY(board) REFERENCES boards (board)
);
CREATE TABLE team_messages (
	lead TEXT NOT NULL, 
	n BIGINT NOT NULL, 
	box TEXT NOT NULL, 
	reader TEXT NOT NULL, 
	type TEXT NOT NULL, 
	sender TEXT NOT NULL, 
	content TEXT NOT NULL, 
	extra TEXT NOT NULL, 
	at TEXT NOT NULL, 
	read_at TEXT, 
	CONSTRAINT pk_team_messages PRIMARY KEY (lead, n), 
	CONSTRAINT fk_team_messages_lead FOREIGN KEY(lead) REFERENCES sessions (thread_id)
);
INSERT INTO "team_messages" VALUES('0123456789ab',1,'lead','0123456789ab','message','ann','done','{"status":"idle"}','2026-11-20T12:00:00.000000+00:00',NULL);
CREATE TABLE team_phases (
	lead TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	n INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	fork TEXT NOT NULL, 
	state TEXT NOT NULL, 
	ended_at TEXT, 
	counted_in TEXT, 
	CONSTRAINT pk_team_phases PRIMARY KEY (lead, number, n), 
	CONSTRAINT fk_team_phases_lead FOREIGN KEY(lead) REFERENCES sessions (thread_id)
);
INSERT INTO "team_phases" VALUES('0123456789ab',1,1,'t_01','b_01','merged','2026-11-20T12:00:00.000000+00:00',NULL);
CREATE TABLE team_requests (
	lead TEXT NOT NULL, 
	request_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	expires_at TEXT NOT NULL, 
	answered_at TEXT, 
	detail TEXT NOT NULL, 
	CONSTRAINT pk_team_requests PRIMARY KEY (lead, request_id), 
	CONSTRAINT fk_team_requests_lead FOREIGN KEY(lead) REFERENCES sessions (thread_id)
);
INSERT INTO "team_requests" VALUES('0123456789ab','0a1b2c3d','shutdown',1,'approved','2026-11-20T12:00:00.000000+00:00','2026-11-20T12:00:00.000000+00:00','2026-11-20T12:00:00.000000+00:00','finished');
CREATE TABLE teammates (
	lead TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	holder TEXT, 
	created_at TEXT NOT NULL, 
	ended_at TEXT, 
	CONSTRAINT pk_teammates PRIMARY KEY (lead, number), 
	CONSTRAINT fk_teammates_lead FOREIGN KEY(lead) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_teammates_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT uq_teammates_thread_id UNIQUE (thread_id)
);
INSERT INTO "teammates" VALUES('0123456789ab',1,'ann','tester','0123456789ab.team.ann','shutdown',NULL,'2026-11-20T12:00:00.000000+00:00','2026-11-20T12:00:00.000000+00:00');
CREATE TABLE tickets (
	sha256 TEXT NOT NULL, 
	caller TEXT NOT NULL, 
	expires_at TEXT NOT NULL, 
	CONSTRAINT pk_tickets PRIMARY KEY (sha256)
);
CREATE TABLE todos (
	thread_id TEXT NOT NULL, 
	items TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	CONSTRAINT pk_todos PRIMARY KEY (thread_id), 
	CONSTRAINT fk_todos_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id)
);
CREATE TABLE tokens (
	token_id TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	user TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	expires_at TEXT, 
	revoked_at TEXT, 
	CONSTRAINT pk_tokens PRIMARY KEY (token_id), 
	CONSTRAINT uq_tokens_sha256 UNIQUE (sha256)
);
CREATE TABLE traces (
	thread_id TEXT NOT NULL, 
	n BIGINT NOT NULL, 
	turn_id TEXT, 
	at TEXT NOT NULL, 
	bytes INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_traces PRIMARY KEY (thread_id, n), 
	CONSTRAINT fk_traces_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id)
);
CREATE TABLE turns (
	turn_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	n INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	state TEXT NOT NULL, 
	waiting_for TEXT, 
	attempt INTEGER NOT NULL, 
	epoch BIGINT NOT NULL, 
	stop_reason TEXT, 
	error TEXT, 
	usage TEXT, 
	cost FLOAT, 
	snapshot_id TEXT, 
	started_at TEXT, 
	ended_at TEXT, 
	CONSTRAINT pk_turns PRIMARY KEY (turn_id), 
	CONSTRAINT fk_turns_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT uq_turns_thread_id_n UNIQUE (thread_id, n)
);
INSERT INTO "turns" VALUES('t_01j00000000000000000000000','0123456789ab',1,'user','done',NULL,1,1,'end_turn',NULL,NULL,NULL,'s_01j00000000000000000000000','2026-11-20T09:00:00.000000+00:00','2026-11-20T09:00:01.000000+00:00');
CREATE TABLE usage (
	id INTEGER NOT NULL, 
	thread_id TEXT NOT NULL, 
	turn_id TEXT, 
	agent TEXT NOT NULL, 
	purpose TEXT NOT NULL, 
	model TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cache_read_tokens BIGINT NOT NULL, 
	cache_write_tokens BIGINT NOT NULL, 
	cost FLOAT, 
	priced BOOLEAN NOT NULL, 
	estimated BOOLEAN NOT NULL, 
	at TEXT NOT NULL, 
	CONSTRAINT pk_usage PRIMARY KEY (id), 
	CONSTRAINT fk_usage_thread_id FOREIGN KEY(thread_id) REFERENCES sessions (thread_id), 
	CONSTRAINT fk_usage_turn_id FOREIGN KEY(turn_id) REFERENCES turns (turn_id)
);
INSERT INTO "usage" VALUES(1,'0123456789ab','t_01j00000000000000000000000','main','main','anthropic:claude',10,5,0,0,0.001,1,0,'2026-11-20T06:53:53.821237+00:00');
INSERT INTO "usage" VALUES(2,'0123456789ab','t_01j00000000000000000000000','main','main','anthropic:claude',20,2,0,0,NULL,0,0,'2026-11-20T06:53:53.828681+00:00');
CREATE INDEX ix_quarantine_source_key ON quarantine (source, "key");
CREATE INDEX ix_sessions_channel_chat_id ON sessions (channel, chat_id);
CREATE INDEX ix_sessions_parent_thread_id ON sessions (parent_thread_id);
CREATE INDEX ix_sessions_updated_at ON sessions (updated_at);
CREATE INDEX ix_turns_state ON turns (state);
CREATE INDEX ix_journal_turn_id ON journal (turn_id);
CREATE INDEX ix_effects_turn_id ON effects (turn_id);
CREATE INDEX ix_snapshots_thread_id ON snapshots (thread_id);
CREATE INDEX ix_snapshots_turn_id ON snapshots (turn_id);
CREATE INDEX ix_inbox_thread_id_state ON inbox (thread_id, state);
CREATE INDEX ix_inbox_turn_id ON inbox (turn_id);
CREATE INDEX ix_inbox_received_at ON inbox (received_at);
CREATE INDEX ix_outbox_thread_id ON outbox (thread_id);
CREATE INDEX ix_outbox_turn_id ON outbox (turn_id);
CREATE INDEX ix_outbox_state_next_at ON outbox (state, next_at);
CREATE INDEX ix_usage_thread_id ON usage (thread_id);
CREATE INDEX ix_usage_turn_id ON usage (turn_id);
CREATE INDEX ix_usage_at ON usage (at);
CREATE INDEX ix_reservations_turn_id ON reservations (turn_id);
CREATE INDEX ix_reservations_scope_key_state ON reservations (scope, "key", state);
CREATE INDEX ix_memory_versions_owner_workspace_id ON memory_versions (owner, workspace, id);
CREATE INDEX ix_answers_at ON answers (at);
CREATE INDEX ix_traces_at ON traces (at);
CREATE INDEX ix_tokens_name ON tokens (name);
CREATE INDEX ix_tickets_expires_at ON tickets (expires_at);
CREATE INDEX ix_task_edges_board_blocked ON task_edges (board, blocked);
CREATE INDEX ix_notifications_state_thread_id ON notifications (state, thread_id);
CREATE INDEX ix_subagents_root_state ON subagents (root, state);
CREATE INDEX ix_subagents_root_turn ON subagents (root_turn);
CREATE INDEX ix_teammates_status ON teammates (status);
CREATE INDEX ix_team_messages_reader_read_at ON team_messages (reader, read_at);
CREATE INDEX ix_team_requests_status_expires_at ON team_requests (status, expires_at);
CREATE INDEX ix_scheduled_tasks_active_next_run ON scheduled_tasks (active, next_run);
CREATE INDEX ix_scheduled_tasks_owner_active ON scheduled_tasks (owner, active);
CREATE INDEX ix_scheduled_tasks_made_by ON scheduled_tasks (made_by);
CREATE INDEX ix_scheduled_runs_turn_id ON scheduled_runs (turn_id);
CREATE INDEX ix_scheduled_runs_ended_at ON scheduled_runs (ended_at);
CREATE INDEX ix_channel_codes_expires_at ON channel_codes (expires_at);
CREATE UNIQUE INDEX uq_channel_updates_channel_dedupe_key ON channel_updates (channel, dedupe_key);
CREATE INDEX ix_channel_updates_at ON channel_updates (at);
CREATE INDEX ix_channel_updates_state_channel ON channel_updates (state, channel);
CREATE INDEX ix_channel_cards_expires_at ON channel_cards (expires_at);
CREATE INDEX ix_channel_cards_thread_id ON channel_cards (thread_id);
CREATE INDEX ix_channel_buttons_card_id ON channel_buttons (card_id);
CREATE INDEX ix_channel_sent_at ON channel_sent (at);
CREATE INDEX ix_push_subscriptions_owner ON push_subscriptions (owner);
CREATE INDEX ix_provider_sessions_owner ON provider_sessions (owner);
CREATE INDEX ix_provider_sessions_thread_id ON provider_sessions (thread_id);
CREATE INDEX ix_provider_messages_session_id ON provider_messages (session_id, id);
CREATE INDEX ix_outcomes_thread_id ON outcomes (thread_id);
CREATE INDEX ix_outcomes_at ON outcomes (at);
COMMIT;
