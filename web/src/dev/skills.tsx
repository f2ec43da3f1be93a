/** Skills: read, written and deleted (UI-35, SV-12). */

import { GraduationCap, Pencil, Trash2 } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { api } from "../api/client.ts";
import type { Named, Skill } from "../api/types.ts";
import { Page } from "../app/page.tsx";
import { t } from "../text.ts";
import { Dialog, Empty, IconButton, Loading, Problem } from "../ui/kit.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { complain } from "../ui/toasts.tsx";

const EMPTY: Skill = { name: "", description: "", body: "" };

function useSkill(name: string): Skill | null {
  const [skill, setSkill] = useState<Skill | null>(null);
  useEffect(() => {
    api.skill(name).then(setSkill, complain);
  }, [name]);
  return skill;
}

function Read({ name, onEdit, onDelete, onClose }: { name: string; onEdit: (skill: Skill) => void; onDelete: () => void; onClose: () => void }) {
  const skill = useSkill(name);
  return (
    <Dialog
      wide
      title={name}
      onClose={onClose}
      foot={
        <>
          <IconButton icon={Trash2} className="danger" label={t.deleteSkill(name)} onClick={onDelete} />
          <span className="grow" />
          <button type="button" className="button primary" disabled={!skill} onClick={() => skill && onEdit(skill)}>
            <Pencil size={14} aria-hidden="true" />
            {t.edit}
          </button>
        </>
      }
    >
      {!skill && <Loading label={t.loading} />}
      {skill && <p className="muted">{skill.description}</p>}
      {skill && <Markdown text={skill.body} />}
    </Dialog>
  );
}

function Write({ begin, onDone, onClose }: { begin: Skill; onDone: () => void; onClose: () => void }) {
  const [skill, setSkill] = useState(begin);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const isNew = begin.name === "";
  const change = (part: Partial<Skill>): void => setSkill({ ...skill, ...part });
  const save = (): void => {
    setBusy(true);
    api.writeSkill(skill, !isNew).then(onDone, (error: unknown) => {
      setBusy(false);
      setProblem(error instanceof Error ? error.message : String(error));
    });
  };
  return (
    <Dialog
      wide
      title={isNew ? t.newSkill : skill.name}
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="button" className="button primary" disabled={busy || !skill.name.trim() || !skill.description.trim()} onClick={save}>
            {t.save}
          </button>
        </>
      }
    >
      {problem && <Problem>{problem}</Problem>}
      {isNew && (
        <label className="field">
          <span>{t.skillName}</span>
          <input className="input mono" autoFocus maxLength={64} pattern="[a-z0-9][a-z0-9-]*" value={skill.name} onChange={(event) => change({ name: event.target.value })} />
          <span className="hint">{t.skillNameHint}</span>
        </label>
      )}
      <label className="field">
        <span>{t.description}</span>
        <input className="input" maxLength={1024} value={skill.description} onChange={(event) => change({ description: event.target.value })} />
        <span className="hint">{t.descriptionHint}</span>
      </label>
      <label className="field">
        <span>{t.instructions}</span>
        <textarea className="input mono tall" value={skill.body} onChange={(event) => change({ body: event.target.value })} />
      </label>
    </Dialog>
  );
}

export default function SkillsPage() {
  const [rows, setRows] = useState<Named[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [reading, setReading] = useState<string | null>(null);
  const [writing, setWriting] = useState<Skill | null>(null);
  const [deleting, setDeleting] = useState<string | null>(null);
  const load = useCallback((): void => {
    api.skills().then(setRows, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  useEffect(load, [load]);
  const shut = (): void => {
    setReading(null);
    setWriting(null);
    setDeleting(null);
  };
  const remove = (name: string): void => {
    shut();
    void api.removeSkill(name).then(load, complain);
  };
  return (
    <Page
      title={t.skills}
      about={t.skillsAbout}
      problem={problem}
      ready={rows !== null}
      actions={
        <button type="button" className="button primary" onClick={() => setWriting(EMPTY)}>
          {t.newSkill}
        </button>
      }
    >
      {rows?.length === 0 && <Empty icon={GraduationCap} title={t.noSkills} />}
      <div className="cards">
        {rows?.map((row) => (
          <button key={row.name} type="button" className="card skill" onClick={() => setReading(row.name)}>
            <strong className="mono">{row.name}</strong>
            <span className="muted">{row.description}</span>
          </button>
        ))}
      </div>
      {reading && !deleting && <Read name={reading} onClose={shut} onDelete={() => setDeleting(reading)} onEdit={(skill) => { setReading(null); setWriting(skill); }} />}
      {writing && <Write begin={writing} onClose={shut} onDone={() => { shut(); load(); }} />}
      {deleting && (
        <Dialog
          title={t.deleteSkill(deleting)}
          onClose={shut}
          foot={
            <>
              <button type="button" className="button" onClick={shut}>
                {t.cancel}
              </button>
              <button type="button" className="button danger" onClick={() => remove(deleting)}>
                {t.delete}
              </button>
            </>
          }
        >
          <p>{t.deleteSkillText}</p>
        </Dialog>
      )}
    </Page>
  );
}
