-- What the previous release writes, in its own statements: rows in every table, then every kind of change.
-- @ stands for a suffix of ids, so that all of it can be written twice. Statements end with a semicolon and a newline.
insert into sessions (id, tenant, title, system, model, settings, usage, created_at, updated_at)
values ('ses_@', 't', 'đọc', '[ {"text":"b", "type":"text"} ]', 'm', '{"metadata": {"b":1.0,"a": 1e2}}', '{}', '2026-01-02 03:04:05.000001+00', now());
insert into sessions (id, tenant, system, model, settings, parent_session_id, usage, created_at, updated_at)
values ('ses_child_@', 't', '[]', 'm', '{}', 'ses_@', '{}', now(), now());
insert into session_heads (session_id, next_message_seq) values ('ses_@', 1);
insert into idempotency (tenant, path, key, body_hash, resource, created_at)
values ('t', '/v1/sessions/ses_@/turns', 'k', 'hash', 'run_@', now());
update session_heads set next_event_seq = next_event_seq + 1 where session_id = 'ses_@';
insert into runs (id, session_id, turn, kind, status, input, model, state_json, usage, created_at)
values ('run_@', 'ses_@', 1, 'turn', 'queued', '{"content":[{"type":"text","text":"\u2028"}]}', 'm', '{}', '{}', now());
insert into events (session_id, seq, type, run_id, data, created_at)
values ('ses_@', 1, 'turn.queued', 'run_@', '{"turn" : 1}', now());
update session_heads set generation = generation + 1, running_run_id = 'run_@', owner = 'one',
    lease_until = clock_timestamp() + make_interval(secs => 15) where session_id = 'ses_@';
update runs set status = 'running', started_at = coalesce(started_at, clock_timestamp()) where id = 'run_@';
insert into messages (session_id, seq, id, run_id, role, content, user_visible, agent_visible, created_at)
values ('ses_@', 1, 'msg_@1', 'run_@', 'user', '[{"type":"text","text":"go"}]', true, true, now());
insert into messages (session_id, seq, id, run_id, role, content, stop_reason, usage, created_at)
values ('ses_@', 2, 'msg_@2', 'run_@', 'assistant', '[{"type":"tool_use","id":"a","name":"x","input":{"z":1,"a":0.10}}]', 'tool_use', '{"input":1}', now());
insert into tool_calls (session_id, message_seq, index, tool_use_id, name, state) values ('ses_@', 2, 0, 'a', 'x', 'pending');
update tool_calls set state = 'started' where session_id = 'ses_@' and message_seq = 2 and index = 0;
update tool_calls set state = 'done', result = '{"content":"r"}', is_error = false where session_id = 'ses_@' and message_seq = 2 and index = 0;
insert into events (session_id, seq, type, run_id, message_seq, data, created_at)
values ('ses_@', 2, 'message.assistant', 'run_@', 2, '{}', now());
update session_heads set next_event_seq = 3, next_message_seq = 3 where session_id = 'ses_@';
update runs set deaths = 1, death_step = 2, cancel_requested = true where id = 'run_@';
update runs set status = 'completed', stop_reason = 'end_turn', ended_at = now(), error = null,
    state_json = '{"private": {"x":1.50}}', usage = '{"main":{"input":1}}' where id = 'run_@';
update session_heads set running_run_id = null, lease_until = null, owner = null where session_id = 'ses_@';
update sessions set usage = '{"main":{"input":1}}', status = 'idle', updated_at = now() where id = 'ses_@';
