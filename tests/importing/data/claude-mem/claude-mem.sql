PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE schema_versions (
        id INTEGER PRIMARY KEY,
        version INTEGER UNIQUE NOT NULL,
        applied_at TEXT NOT NULL
      );
INSERT INTO schema_versions VALUES(1,4,'2026-11-28T11:15:57.868Z');
INSERT INTO schema_versions VALUES(2,5,'2026-11-28T11:15:57.869Z');
INSERT INTO schema_versions VALUES(3,6,'2026-11-28T11:15:57.874Z');
INSERT INTO schema_versions VALUES(4,7,'2026-11-28T11:15:57.875Z');
INSERT INTO schema_versions VALUES(5,8,'2026-11-28T11:15:57.876Z');
INSERT INTO schema_versions VALUES(6,9,'2026-11-28T11:15:57.877Z');
INSERT INTO schema_versions VALUES(7,10,'2026-11-28T11:15:57.878Z');
INSERT INTO schema_versions VALUES(8,11,'2026-11-28T11:15:57.879Z');
INSERT INTO schema_versions VALUES(9,16,'2026-11-28T11:15:57.879Z');
INSERT INTO schema_versions VALUES(10,17,'2026-11-28T11:15:57.879Z');
INSERT INTO schema_versions VALUES(11,20,'2026-11-28T11:15:57.880Z');
INSERT INTO schema_versions VALUES(12,21,'2026-11-28T11:15:57.880Z');
INSERT INTO schema_versions VALUES(13,22,'2026-11-28T11:15:57.880Z');
INSERT INTO schema_versions VALUES(14,23,'2026-11-28T11:15:57.881Z');
INSERT INTO schema_versions VALUES(15,24,'2026-11-28T11:15:57.881Z');
INSERT INTO schema_versions VALUES(16,26,'2026-11-28T11:15:57.882Z');
INSERT INTO schema_versions VALUES(17,27,'2026-11-28T11:15:57.884Z');
INSERT INTO schema_versions VALUES(18,29,'2026-11-28T11:15:57.884Z');
INSERT INTO schema_versions VALUES(19,30,'2026-11-28T11:15:57.884Z');
INSERT INTO schema_versions VALUES(20,31,'2026-11-28T11:15:57.885Z');
INSERT INTO schema_versions VALUES(21,28,'2026-11-28T11:15:57.886Z');
INSERT INTO schema_versions VALUES(22,32,'2026-11-28T11:15:57.886Z');
INSERT INTO schema_versions VALUES(23,33,'2026-11-28T11:15:57.887Z');
INSERT INTO schema_versions VALUES(24,34,'2026-11-28T11:15:57.889Z');
INSERT INTO schema_versions VALUES(25,35,'2026-11-28T11:15:57.890Z');
INSERT INTO schema_versions VALUES(26,39,'2026-11-28T11:15:57.891Z');
INSERT INTO schema_versions VALUES(27,41,'2026-11-28T11:15:57.893Z');
INSERT INTO schema_versions VALUES(28,42,'2026-11-28T11:15:57.894Z');
INSERT INTO schema_versions VALUES(29,44,'2026-11-28T11:15:57.894Z');
INSERT INTO schema_versions VALUES(30,45,'2026-11-28T11:15:57.894Z');
INSERT INTO schema_versions VALUES(31,46,'2026-11-28T11:15:57.895Z');
INSERT INTO schema_versions VALUES(32,47,'2026-11-28T11:15:57.896Z');
INSERT INTO schema_versions VALUES(33,48,'2026-11-28T11:15:57.896Z');
INSERT INTO schema_versions VALUES(34,49,'2026-11-28T11:15:57.897Z');
INSERT INTO schema_versions VALUES(35,50,'2026-11-28T11:15:57.898Z');
INSERT INTO schema_versions VALUES(36,51,'2026-11-28T11:15:57.899Z');
INSERT INTO schema_versions VALUES(37,52,'2026-11-28T11:15:57.899Z');
CREATE TABLE sdk_sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        content_session_id TEXT NOT NULL,
        memory_session_id TEXT UNIQUE,
        project TEXT NOT NULL,
        platform_source TEXT NOT NULL DEFAULT 'claude',
        user_prompt TEXT,
        started_at TEXT NOT NULL,
        started_at_epoch INTEGER NOT NULL,
        completed_at TEXT,
        completed_at_epoch INTEGER,
        status TEXT CHECK(status IN ('active', 'completed', 'failed')) NOT NULL DEFAULT 'active'
      , worker_port INTEGER, prompt_counter INTEGER DEFAULT 0, custom_title TEXT, observed_model TEXT, observed_billing TEXT);
INSERT INTO sdk_sessions VALUES(1,'0674ede6-671a-4aa1-9836-4d245f983a7b','openrouter-0674ede6-671a-4aa1-9836-4d245f983a7b-1795864573942','project','claude','Choose a store for the invoices.','2026-11-28T11:16:13.939Z',1795864573939,'2026-11-28T11:16:52.883Z',1795864612883,'completed',37791,0,NULL,'scripted','unknown');
INSERT INTO sdk_sessions VALUES(2,'1b64ede6-671a-4aa1-9836-4d245f983a7c','openrouter-1b64ede6-671a-4aa1-9836-4d245f983a7c-1795864623066','project','claude','Say hello.','2026-11-28T11:17:03.058Z',1795864623058,'2026-11-28T11:17:18.034Z',1795864638034,'completed',NULL,0,NULL,NULL,NULL);
INSERT INTO sdk_sessions VALUES(3,'manual-content-project-claude','manual-project-claude','project','claude',NULL,'2026-11-28T11:17:03.158Z',1795864623158,NULL,NULL,'active',NULL,0,NULL,NULL,NULL);
CREATE TABLE IF NOT EXISTS "session_summaries" (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        memory_session_id TEXT NOT NULL,
        project TEXT NOT NULL,
        request TEXT,
        investigated TEXT,
        learned TEXT,
        completed TEXT,
        next_steps TEXT,
        files_read TEXT,
        files_edited TEXT,
        notes TEXT,
        prompt_number INTEGER,
        created_at TEXT NOT NULL,
        created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER DEFAULT 0, merged_into_project TEXT, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT NOT NULL DEFAULT '1',
        FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE
      );
INSERT INTO session_summaries VALUES(1,'openrouter-0674ede6-671a-4aa1-9836-4d245f983a7b-1795864573942','project','Choose a store for the invoices','store.py and its tests','Invoices are documents, so JSONB fits','Postgres is used in store.py','Write the migration','[]','[]','SQLite stays for tests',2,'2026-11-28T11:16:32.822Z',1795864592822,2,NULL,NULL,NULL,NULL,'1');
CREATE TABLE IF NOT EXISTS "observations" (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        memory_session_id TEXT NOT NULL,
        project TEXT NOT NULL,
        text TEXT,
        type TEXT NOT NULL,
        title TEXT,
        subtitle TEXT,
        facts TEXT,
        narrative TEXT,
        concepts TEXT,
        files_read TEXT,
        files_modified TEXT,
        prompt_number INTEGER,
        created_at TEXT NOT NULL,
        created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER DEFAULT 0, content_hash TEXT, generated_by_model TEXT, relevance_count INTEGER DEFAULT 0, merged_into_project TEXT, agent_type TEXT, agent_id TEXT, metadata TEXT, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT NOT NULL DEFAULT '1',
        FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE
      );
INSERT INTO observations VALUES(1,'openrouter-0674ede6-671a-4aa1-9836-4d245f983a7b-1795864573942','project',NULL,'decision','Postgres stores the invoices','Chosen over SQLite','["The service needs JSONB","SQLite was tried, and refused"]','Ana chose Postgres in store.py, because invoices are documents.','["trade-off","why-it-exists"]','["store.py"]','["/home/ana/project/store.py"]',1,'2026-11-28T11:16:14.877Z',1795864574877,2,'9d4d21bae82e2b30','scripted',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'1');
INSERT INTO observations VALUES(2,'openrouter-0674ede6-671a-4aa1-9836-4d245f983a7b-1795864573942','project',NULL,'bugfix','The port is read as a number',NULL,'["app.py reads PORT as text"]','The test failed, since the port was a text.','["problem-solution"]','["app.py"]','[]',2,'2026-11-28T11:16:24.248Z',1795864584248,2,'ed1276df1f8cfefa','scripted',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'1');
INSERT INTO observations VALUES(4,'manual-project-claude','project',NULL,'discovery','Deploys','Manual memory','[]','Ana deploys on Fridays.','[]','[]','[]',NULL,'2026-11-28T11:17:03.159Z',1795864623159,0,'d635167e591b7afd',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'1');
CREATE TABLE IF NOT EXISTS "user_prompts" (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_db_id INTEGER,
        content_session_id TEXT NOT NULL,
        prompt_number INTEGER NOT NULL,
        prompt_text TEXT NOT NULL,
        created_at TEXT NOT NULL,
        created_at_epoch INTEGER NOT NULL, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT NOT NULL DEFAULT '1',
        FOREIGN KEY(session_db_id) REFERENCES sdk_sessions(id) ON DELETE CASCADE
      );
INSERT INTO user_prompts VALUES(1,1,'0674ede6-671a-4aa1-9836-4d245f983a7b',1,'Choose a store for the invoices.','2026-11-28T11:16:13.939Z',1795864573939,NULL,NULL,NULL,'1');
INSERT INTO user_prompts VALUES(2,1,'0674ede6-671a-4aa1-9836-4d245f983a7b',2,'Does the test pass?','2026-11-28T11:16:23.540Z',1795864583540,NULL,NULL,NULL,'1');
INSERT INTO user_prompts VALUES(3,1,'0674ede6-671a-4aa1-9836-4d245f983a7b',3,'Go on: mend the port.','2026-11-28T11:16:55.964Z',1795864615964,NULL,NULL,NULL,'1');
INSERT INTO user_prompts VALUES(4,2,'1b64ede6-671a-4aa1-9836-4d245f983a7c',1,'Say hello.','2026-11-28T11:17:03.061Z',1795864623061,NULL,NULL,NULL,'1');
COMMIT;
