from __future__ import annotations

from pathlib import Path

from inbounds.jobs.attempts import entries, file_of, fruitless, note, since_asked


def test_what_happened_is_told_whatever_a_kill_cut_off(tmp_path: Path) -> None:
    note(tmp_path, 7, "began", epoch=2)
    with file_of(tmp_path, 7).open("a") as stream:
        stream.write('{"what": "ended", "wh')
    note(tmp_path, 7, "began", epoch=3)
    note(tmp_path, 7, "ended", how="failed", why="no room\nat all \udcff")
    found = entries(tmp_path, 7)
    assert [(entry.what, entry.epoch, entry.how) for entry in found] == [
        *(("began", 2, ""), ("began", 3, ""), ("ended", 0, "failed"))
    ]
    assert found[-1].why.startswith("no room\nat all")
    assert entries(tmp_path, 8) == []


def test_attempts_that_bring_nothing_are_counted_since_a_person_asked(tmp_path: Path) -> None:
    for epoch in (0, 2, 2, 2):
        note(tmp_path, 0, "began", epoch=epoch)
        note(tmp_path, 0, "ended", how="stopped")
    assert fruitless(entries(tmp_path, 0), 2) == 3
    assert fruitless(entries(tmp_path, 0), 3) == 0
    note(tmp_path, 0, "asked")
    assert fruitless(entries(tmp_path, 0), 2) == 0
    assert since_asked(entries(tmp_path, 0)) == []


def test_who_waits_for_others_of_his_task_is_not_at_fault(tmp_path: Path) -> None:
    for how in ("stopped", "waited", "waited", "waited", "stopped"):
        note(tmp_path, 0, "began")
        note(tmp_path, 0, "ended", how=how)
    assert fruitless(entries(tmp_path, 0), 0) == 2


def test_a_scheduler_s_job_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "12")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURMD_NODENAME", "n4")
    note(tmp_path, 0, "began")
    assert entries(tmp_path, 0)[0].where == "n4, job 12_3"
