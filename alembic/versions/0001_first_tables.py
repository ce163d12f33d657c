"""Sessions with their heads, transcript, calls, runs and events, and the keys of repeated requests."""

from alembic import op

revision = "first_tables"
down_revision = None

SESSIONS = (
    """
    create table sessions (
        id text primary key,
        tenant text not null,
        title text,
        system json not null,
        model text not null,
        settings json not null,
        parent_session_id text references sessions (id) on delete cascade,
        status text not null default 'idle',
        usage json not null,
        created_at timestamptz not null,
        updated_at timestamptz not null
    )
    """,
    "create index sessions_by_tenant on sessions (tenant, created_at, id)",
    "create index sessions_by_parent on sessions (parent_session_id) where parent_session_id is not null",
    """
    create table session_heads (
        session_id text primary key references sessions (id) on delete cascade,
        next_message_seq int not null default 1,
        next_event_seq int not null default 1,
        running_run_id text,
        generation int not null default 0,
        lease_until timestamptz,
        owner text
    ) with (fillfactor = 70)
    """,
)
TRANSCRIPT = (
    """
    create table messages (
        session_id text not null references session_heads (session_id) on delete cascade,
        seq int not null,
        id text not null unique,
        run_id text,
        role text not null,
        content json not null,
        stop_reason text,
        usage json,
        user_visible boolean not null default true,
        agent_visible boolean not null default true,
        created_at timestamptz not null,
        primary key (session_id, seq)
    )
    """,
    "create index messages_replies on messages (session_id, run_id, seq) where role = 'assistant'",
    """
    create table tool_calls (
        session_id text not null,
        message_seq int not null,
        index int not null,
        tool_use_id text not null,
        name text not null,
        state text not null,
        result json,
        is_error boolean not null default false,
        deadline timestamptz,
        primary key (session_id, message_seq, index),
        unique (session_id, tool_use_id),
        foreign key (session_id, message_seq) references messages (session_id, seq) on delete cascade
    )
    """,
)
# A migration that must change rows opens its transaction to it with: set local hango.allow_rewrite = 'on'.
APPEND_ONLY = (
    """
    create function messages_append_only() returns trigger language plpgsql as $$
    begin
        if current_setting('hango.allow_rewrite', true) = 'on' then
            return null;
        end if;
        if tg_op = 'DELETE' then
            if not exists (select from gone join session_heads using (session_id)) then
                return null; -- the session itself is being deleted
            end if;
        end if;
        raise exception 'messages are append-only: % refused', lower(tg_op)
            using errcode = 'integrity_constraint_violation';
    end $$
    """,
    """
    create trigger messages_no_update before update on messages
    for each statement execute function messages_append_only()
    """,
    """
    create trigger messages_no_truncate before truncate on messages
    for each statement execute function messages_append_only()
    """,
    """
    create trigger messages_no_delete after delete on messages referencing old table as gone
    for each statement execute function messages_append_only()
    """,
)
RUNS = (
    """
    create table runs (
        id text primary key,
        session_id text not null references session_heads (session_id) on delete cascade,
        turn int not null,
        kind text not null,
        status text not null,
        input json not null,
        model text not null,
        parent_run_id text,
        state_json json not null,
        usage json not null,
        stop_reason text,
        error json,
        cancel_requested boolean not null default false,
        deaths int not null default 0,
        death_step int not null default 0,
        created_at timestamptz not null,
        started_at timestamptz,
        ended_at timestamptz,
        unique (session_id, turn)
    )
    """,
    "create unique index runs_one_running on runs (session_id) where status = 'running'",
    "create index runs_live on runs (session_id, turn) where status in ('queued', 'running', 'waiting')",
    """
    create table events (
        session_id text not null references session_heads (session_id) on delete cascade,
        seq int not null,
        type text not null,
        run_id text,
        message_seq int,
        data json not null,
        created_at timestamptz not null,
        primary key (session_id, seq)
    )
    """,
    "create index events_by_run on events (run_id, seq)",
)
IDEMPOTENCY = (
    """
    create table idempotency (
        tenant text not null,
        path text not null,
        key text not null,
        body_hash text not null,
        resource text not null,
        created_at timestamptz not null,
        primary key (tenant, path, key)
    )
    """,
    "create index idempotency_by_age on idempotency (created_at)",
)


def upgrade() -> None:
    for statement in (*SESSIONS, *TRANSCRIPT, *APPEND_ONLY, *RUNS, *IDEMPOTENCY):
        op.execute(statement)


def downgrade() -> None:
    for table in ("idempotency", "events", "runs", "tool_calls", "messages", "session_heads", "sessions"):
        op.drop_table(table)
    op.execute("drop function messages_append_only")
