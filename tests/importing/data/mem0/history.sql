PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE history (
                        id           TEXT PRIMARY KEY,
                        memory_id    TEXT,
                        old_memory   TEXT,
                        new_memory   TEXT,
                        event        TEXT,
                        created_at   DATETIME,
                        updated_at   DATETIME,
                        is_deleted   INTEGER,
                        actor_id     TEXT,
                        role         TEXT
                    );
INSERT INTO history VALUES('101c0505-116a-4f32-b543-91ecc548cdf4','d303e4b1-9474-40bc-92ec-a63196856cc9',NULL,'The marmot service uses Postgres, because it needs JSONB.','ADD','2026-11-28T11:18:06.520756+00:00',NULL,0,NULL,NULL);
INSERT INTO history VALUES('86fb57d7-53cd-42dd-bc03-b7f4f34ce131','f4b09c62-c236-4777-8285-29dffb93b681',NULL,'Ana deploys on Fridays.','ADD','2026-11-28T11:18:06.520795+00:00',NULL,0,NULL,NULL);
INSERT INTO history VALUES('4e1b2e1f-de6d-4dec-8db5-957b2c35c470','86d0f738-10f4-4f64-8e6c-ae050af84c7a',NULL,'Tickets are on the board MAR.','ADD','2026-11-28T11:18:06.929440+00:00','2026-11-28T11:18:06.929440+00:00',0,NULL,'user');
INSERT INTO history VALUES('50baa507-8567-4ebd-9a13-6d893704b8ef','3e9d386c-408b-442e-9129-1ffe7bbdda14',NULL,'The freeze ends in December.','ADD','2026-11-28T11:18:07.009773+00:00','2026-11-28T11:18:07.009773+00:00',0,'Bob','user');
INSERT INTO history VALUES('3003c81a-969d-4156-9072-f70ea899f0c8','fc4d0010-21a9-41db-a99c-c64a9b64307a',NULL,replace('## Summary of the agent''s steps\n\n1. Ran the tests.\n2. Set the port in app.py.','\n',char(10)),'ADD','2026-11-28T11:18:07.068248+00:00','2026-11-28T11:18:07.068248+00:00',0,NULL,NULL);
INSERT INTO history VALUES('5d67a7f5-854b-4c6f-81f1-280896a50ad1','4cc686d3-7bc3-4bff-993c-2dd0883dbbd3',NULL,'Ana drinks tea.','ADD','2026-11-28T11:18:08.313924+00:00','2026-11-28T11:18:08.313924+00:00',0,NULL,'user');
INSERT INTO history VALUES('221f9334-dfca-4ed8-9b31-0e110fc7665d','4cc686d3-7bc3-4bff-993c-2dd0883dbbd3','Ana drinks tea.','Ana drinks coffee.','UPDATE','2026-11-28T11:18:08.313924+00:00','2026-11-28T11:18:09.543822+00:00',0,NULL,'user');
INSERT INTO history VALUES('f70d30ba-742b-41ba-9134-8df7b5a28f85','97143bca-cef5-4f5d-9274-38a0ea500e7e',NULL,'Old news.','ADD','2026-11-28T11:18:09.615466+00:00','2026-11-28T11:18:09.615466+00:00',0,NULL,'user');
INSERT INTO history VALUES('f052c7db-a1c1-44e2-88d6-c1bfa21d97ab','97143bca-cef5-4f5d-9274-38a0ea500e7e','Old news.',NULL,'DELETE','2026-11-28T11:18:09.615466+00:00','2026-11-28T11:18:09.630667+00:00',1,NULL,'user');
COMMIT;
