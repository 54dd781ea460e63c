"""The observer without a model: which commands changed something, and what is said of them and of edits."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.observing.builtin import CHANGED_NOTHING, observed, summary
from livememfs.observing.reply import Draft
from livememfs.records.event import SHELLS, Event
from livememfs.records.observation import MAX_ITEM, MAX_TITLE

AT = datetime(2026, 2, 20, tzinfo=UTC)

CHANGING = """
git commit -m 'Mend the login'
git add . && git commit
git -C /p push origin main
git --no-pager merge topic
cd sub && git checkout -b topic
rm -rf build
  rm x
sudo rm -rf /var/cache/x
test -f x || rm x
(cd a; mv b c)
if true; then mkdir -p a/b; fi
for f in *.py; do mv $f old/; done
cat list | xargs rm
FOO=bar BAZ=1 touch x
cp a b
chmod +x run.sh
ln -s a b
npm install
npm ci
pip install trio
pip3 uninstall -y trio
uv add trio
poetry update
cargo add serde
apt-get install -y fuse3
sudo apt install fuse3
brew upgrade
go mod tidy
docker build -t x .
docker compose up -d
kubectl apply -f x.yaml
kubectl -n prod rollout restart deploy/x
terraform apply
make install
systemctl restart nginx
gh pr create --fill
sed -i s/a/b/ f.py
sed -E -i s/a/b/ f.py
perl -pi -e s/a/b/ f.py
tar xzf a.tar.gz
tar -xf a.tar
unzip a.zip
rsync -a a/ b/
echo x > notes.txt
echo x >> notes.txt
cat a b >"$HOME/c"
cat > a.py <<'E'
make 2>&1 | tee build.log
curl -s https://x >out.html
alembic upgrade head
crontab -r
patch -p1 < fix.diff
dd if=a of=b
""".strip("\n").splitlines()  # fmt: skip

LOOKING = """
git status
git log --oneline -5
git diff HEAD~1
git show commit
git --no-pager show commit
git -C /p log
ls -la
cat package.json
grep -rn 'rm -rf' src
grep install README.md
find . -name '*.py'
head -50 a.py
sed -n 1,20p a.py
tar tzf a.tar.gz
pytest -q
python -m pytest tests
npm test
npm run lint
npm ls
pip list
pip show trio
cargo test
cargo check
go test ./...
docker ps
docker logs x
kubectl get pods
terraform plan
make
make test
systemctl status nginx
gh pr-status
echo install
echo rm
which rm
man cp
command 2>/dev/null
make >/dev/null 2>&1
make 2>&1
make &> /dev/null
test 3 -gt 2
node -e 'x => 1'
awk '$1 >= 3' a.txt
wc -l < a.txt
diff <(ls a) <(ls b)
format the report
committee
warm up
""".strip("\n").splitlines()  # fmt: skip


def event(tool: str, given_: Any, output: Any = "", text: str = "") -> Event:
    return Event("t1", "s-1", "tool", AT, project="/p", tool=tool, input=given_, output=output, text=text)


def said(tool: str, given_: Any) -> Draft:
    """What is said of one event."""
    (draft,) = observed([event(tool, given_)]).observations
    return draft


# --- commands ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", CHANGING)
def test_a_command_that_changes_something_is_observed(command: str) -> None:
    found = said("Bash", {"command": command})

    assert (found.events, found.type) == ((1,), "change")
    assert found.facts == (f"Command: {' '.join(command.split())}",)


@pytest.mark.parametrize("command", LOOKING)
def test_a_command_that_only_looks_is_skipped(command: str) -> None:
    found = observed([event("Bash", {"command": command})])

    assert (found.observations, found.skipped) == ((), {1: CHANGED_NOTHING})


def test_a_long_run_of_empty_lines_costs_no_more_than_as_many_characters() -> None:
    def seconds(between: str) -> float:
        began = time.thread_time()
        observed([event("Bash", {"command": f"cat <<E{between * 8_000}E"})])
        return time.thread_time() - began

    assert seconds("\n") < 50 * seconds("x") + 0.5


@pytest.mark.parametrize("tool", [*sorted(SHELLS), "Bash", "Shell", "run_terminal_cmd"])
def test_every_shell_is_one_whatever_its_capitals(tool: str) -> None:
    assert said(tool, {"command": "rm x"}).title == "Ran rm x"


def test_a_command_may_be_a_list_and_says_what_it_was_for() -> None:
    found = said("shell", {"command": ["bash", "-lc", "cd a; rm x"], "description": "Clean\nup"})

    assert (found.title, found.subtitle) == ("Ran bash -lc cd a; rm x", "Clean up")


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("git commit -m 'Mend the login'", "Committed: Mend the login"),
        ('git add . && git commit -am "It\'s done"', "Committed: It's done"),
        ("git -C /p commit -q -m 'One' -m 'More of it'", "Committed: One"),
        ("git commit -m 'Two\nlines'", "Committed: Two lines"),
        ("git commit", "Ran git commit"),
        ("git commit -F message.txt", "Ran git commit -F message.txt"),
        ("git tag -m 'v1' v1", "Ran git tag -m 'v1' v1"),
        (f"git commit -m '{'x' * 400}'", f"Committed: {'x' * (MAX_TITLE - 12)}…"),
    ],
)
def test_a_commit_is_called_by_its_message(command: str, title: str) -> None:
    assert said("Bash", {"command": command}).title == title


def test_a_long_command_is_cut_and_its_characters_are_of_the_basic_plane() -> None:
    found = said("Bash", {"command": "rm \U0001f41b " + "x" * 2_000})

    assert found.title.startswith("Ran rm \ufffd xxx")
    assert (len(found.title), found.title[-1]) == (MAX_TITLE, "…")
    assert len(found.facts[0]) <= MAX_ITEM


# --- edits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given_", "title", "facts"),
    [
        (
            "Edit",
            {"file_path": "/p/a.py", "old_string": "1\n2", "new_string": "3"},
            "Edited a.py",
            ("Edit changed a.py", "2 lines of a.py became 1 line"),
        ),
        ("Write", {"file_path": "/p/a.py", "content": "x"}, "Wrote a.py", ("Write changed a.py",)),
        ("Write", {"file_path": "/q/a.py", "content": "x"}, "Wrote /q/a.py", ("Write changed /q/a.py",)),
        (
            "MultiEdit",
            {
                "file_path": "/p/a.py",
                "edits": [
                    {"old_string": "1", "new_string": ""},
                    {"old_string": "1\n2\n3", "new_string": "4\n5"},
                    "odd",
                    {"old_string": 7, "new_string": "x"},
                ],
            },
            "Edited a.py",
            ("MultiEdit changed a.py", "1 line of a.py became 0 lines", "3 lines of a.py became 2 lines"),
        ),
        ("NotebookEdit", {"notebook_path": "/p/a.ipynb"}, "Edited a.ipynb", ("NotebookEdit changed a.ipynb",)),
        (
            "apply_patch",
            {"patch": "*** Update File: a.py\n*** Add File: b.py"},
            "Edited a.py, b.py",
            ("apply_patch changed a.py", "apply_patch changed b.py"),
        ),
        ("Edit", {}, "Edited a file", ()),
        ("Edit", None, "Edited a file", ()),
    ],
)
def test_an_edit_is_a_change_of_the_files_it_was_given(
    tool: str, given_: Any, title: str, facts: tuple[str, ...]
) -> None:
    assert said(tool, given_) == Draft((1,), "change", title, facts=facts)


def test_what_a_subagent_did_says_so() -> None:
    (draft,) = observed([replace(event("Write", {"file_path": "/p/a.py"}), subagent="a1")]).observations

    assert draft.facts == ("Write changed a.py", "A subagent did it")


def test_a_name_outside_of_the_basic_plane_is_replaced_everywhere() -> None:
    found = said("Edit", {"file_path": "/p/\U0001f41b.py", "old_string": "a", "new_string": "b"})

    assert found.title == "Edited \ufffd.py"
    assert found.facts == ("Edit changed \ufffd.py", "1 line of \ufffd.py became 1 line")


@pytest.mark.parametrize(
    ("tool", "given_"),
    [
        ("Read", {"file_path": "/p/a.py"}),
        ("Grep", {"pattern": "rm x"}),
        ("Bash", {"command": 7}),
        ("Bash", {}),
        ("Bash", "rm x"),
        ("WebFetch", {"url": "https://x", "command": "rm x"}),
        ("", None),
    ],
)
def test_everything_else_is_skipped_with_that_reason(tool: str, given_: Any) -> None:
    assert observed([event(tool, given_)]).skipped == {1: CHANGED_NOTHING}


def test_what_the_agent_said_is_kept_as_it_is_line_by_line() -> None:
    words = Event("w1", "s-1", "said", AT, text="We decide for Postgres:\n\n- two writers\n- one backup")

    (draft,) = observed([words]).observations

    assert draft.title == "The agent said: We decide for Postgres:"
    assert draft.facts == ("We decide for Postgres:", "- two writers", "- one backup")


@pytest.mark.parametrize(
    ("tool", "given_", "output", "facts"),
    [
        (
            "Bash",
            {"command": "npm test"},
            {"error": "Exit code 1\n2 failed"},
            ("Bash: npm test", "Error: Exit code 1 2 failed"),
        ),
        ("Edit", {"file_path": "/p/a.py"}, {"error": "no such text"}, ("Edit: a.py", "Error: no such text")),
        (
            "run_shell_command",
            {"command": "rm x"},
            "Permission denied",
            ("run_shell_command: rm x", "Error: Permission denied"),
        ),
        ("Bash", {"command": "grep x a.py"}, {"error": "Exit code 1"}, None),
        ("Bash", {"command": "rm x"}, {"error": "Command failed with exit code 2"}, None),
        ("Read", {"file_path": "/p/a.py"}, {"error": "File does not exist."}, None),
    ],
)
def test_a_command_or_an_edit_that_failed_says_so_and_nothing_was_changed(
    tool: str, given_: Any, output: Any, facts: tuple[str, ...] | None
) -> None:
    found = observed([replace(event(tool, given_, output), failed=True)])

    assert [one.facts for one in found.observations] == ([facts] if facts else [])
    assert all(one.title.startswith("Failed: ") for one in found.observations)


values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(["command", "edits", "file_path"]), one),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(["Bash", "Edit", "Write", "apply_patch", "Read"]), values), max_size=6))
def test_every_event_of_a_batch_is_accounted_for_once(given_: list[tuple[str, Any]]) -> None:
    found = observed([event(tool, value) for tool, value in given_])

    numbers = [number for draft in found.observations for number in draft.events]
    assert sorted([*numbers, *found.skipped]) == list(range(1, len(given_) + 1))
    assert found.verdict == "ok"


# --- the summary -------------------------------------------------------------------------------------------------


def test_a_summary_says_what_was_asked_first_and_what_was_done() -> None:
    titles = ["[change] Edited a.py", "[change] Ran rm x", "[discovery] The agent said: Mended"]
    found = summary(["Mend\nthe login \U0001f41b", "Thanks"], titles, "Mended:\nby a test")

    assert found == {
        "request": "Mend the login \ufffd",
        "learned": "Mended: by a test",
        "completed": "- [change] Edited a.py\n- [change] Ran rm x",
    }


def test_of_a_session_of_which_nothing_is_known_nothing_is_said() -> None:
    assert not any(summary([], []).values())
