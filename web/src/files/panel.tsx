/** Files of the conversation's branch: browse, preview, upload, download (UI-33). */

import { ArrowLeft, ChevronDown, ChevronRight, Download, File as FileIcon, FileCode, FileImage, FileText, Upload, X } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState, type CSSProperties } from "react";
import { Virtuoso } from "react-virtuoso";
import { api } from "../api/client.ts";
import type { FileListRow, FileText as FileContent } from "../api/types.ts";
import { isImage } from "../state/diff_rows.ts";
import { browseRows, type BrowseRow } from "../state/file_tree.ts";
import { languageOf } from "../state/hunks.ts";
import { size } from "../state/words.ts";
import { seenName } from "../state/hidden_marks.ts";
import { t } from "../text.ts";
import { dropped, saveBlob } from "../ui/browser.ts";
import { useColours } from "../ui/code.tsx";
import { Empty, IconButton, Loading, Problem } from "../ui/kit.tsx";
import { useLeaving } from "../ui/leaving.ts";
import { Markdown } from "../ui/markdown.tsx";
import { PANEL_IS_SHEET, useMedia } from "../ui/media.ts";
import type { FilePlace } from "../ui/places.ts";
import { complain, toast } from "../ui/toasts.tsx";
import { BranchImage } from "./image.tsx";
import { TransferRow, transferred, type Transfer } from "./transfer.tsx";

function iconOf(path: string): typeof FileIcon {
  if (isImage(path)) return FileImage;
  if (/\.(md|txt|rst)$/i.test(path)) return FileText;
  return languageOf(path) ? FileCode : FileIcon;
}

async function save(conversation: string, path: string, at: string | null): Promise<void> {
  saveBlob(await api.download(conversation, path, undefined, at), path.split("/").pop() ?? "file");
}

/** The text of a file; with a line, that one is marked and in view. */
function Text({ file, line }: { file: FileContent; line: number | null }) {
  const coloured = useColours(file.content ?? "", languageOf(file.path));
  const mark = useRef<HTMLDivElement>(null);
  useEffect(() => {
    mark.current?.scrollIntoView({ block: "center" }); // returns a promise where browsers are new
  }, [file, line]);
  if (/\.md$/i.test(file.path) && line === null) return <div tabIndex={0} style={{ overflow: "auto", padding: "1rem" }}><Markdown text={file.content ?? ""} /></div>;
  return (
    <pre tabIndex={0} className={line === null ? "" : "with-line"}>
      {line !== null && <div ref={mark} className="marked-line" aria-hidden="true" style={{ "--line": line - 1 } as CSSProperties} />}
      <code>{coloured}</code>
    </pre>
  );
}

interface PreviewProps {
  conversation: string;
  path: string;
  line: number | null;
  version: number;
  at: string | null;
  onBack: () => void;
}

function Preview({ conversation, path, line, version, at, onBack }: PreviewProps) {
  const [file, setFile] = useState<FileContent | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    setProblem(null);
    api.file(path, conversation, at).then(
      (found) => here && setFile(found),
      (error: unknown) => here && setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      here = false;
    };
  }, [conversation, path, version, at]);
  return (
    <div className="preview">
      <div className="panel-head">
        <IconButton icon={ArrowLeft} label={t.back} className="plain small" onClick={onBack} />
        <h2 className="clip" title={path}>
          {seenName(path)}
          {line === null ? "" : `:${line}`}
        </h2>
        <IconButton icon={Download} label={t.download} onClick={() => void save(conversation, path, at).catch(complain)} />
      </div>
      {problem && <Problem>{problem}</Problem>}
      {!file && !problem && <Loading label={t.loading} />}
      {file?.truncated && <Problem tone="info">{t.truncatedFile(size(file.size))}</Problem>}
      {file && !file.binary && <Text file={file} line={line} />}
      {file?.binary &&
        (isImage(path) ? (
          <BranchImage conversation={conversation} path={path} at={at} />
        ) : (
          <Empty icon={FileIcon} title={t.noPreview}>
            <p>{size(file.size)}</p>
            <button type="button" className="button" onClick={() => void save(conversation, path, at).catch(complain)}>
              {t.download}
            </button>
          </Empty>
        ))}
    </div>
  );
}

/** Return the file that a path means: itself, or the only one whose path ends with it. */
function meant(path: string, rows: readonly FileListRow[] | null): string {
  if (!rows || rows.some((row) => row.path === path)) return path;
  const found = rows.filter((row) => row.path.endsWith(path));
  return found.length === 1 ? (found[0]?.path ?? path) : path;
}

const flipped = (turned: ReadonlySet<string>, path: string): ReadonlySet<string> => {
  const next = new Set(turned);
  if (!next.delete(path)) next.add(path);
  return next;
};

const indent = (depth: number): { paddingLeft: string } => ({ paddingLeft: `${0.75 + depth * 1.1}rem` });

function FolderRow({ row, onTurn }: { row: Extract<BrowseRow, { kind: "folder" }>; onTurn: () => void }) {
  const Chevron = row.open ? ChevronDown : ChevronRight;
  return (
    <button type="button" className="file-row folder" style={indent(row.depth)} aria-expanded={row.open} onClick={onTurn}>
      <Chevron size={15} aria-hidden="true" />
      <span className="clip grow" title={row.path}>
        {seenName(row.name)}
      </span>
      <span className="size">{row.count}</span>
    </button>
  );
}

function FileRow({ row: { file, name, depth }, onPick }: { row: Extract<BrowseRow, { kind: "file" }>; onPick: () => void }) {
  const Icon = iconOf(file.path);
  return (
    <button type="button" className="file-row" style={indent(depth)} onClick={onPick}>
      <Icon size={15} aria-hidden="true" />
      <span className="clip grow" title={file.path}>
        {seenName(name)}
      </span>
      {file.state === "unlanded" && <span className="badge accent">{t.changedWord}</span>}
      <span className="size">{size(file.size)}</span>
    </button>
  );
}

interface FilePanelProps {
  conversation: string;
  version: number;
  /** The turn whose end is looked at; null = now. */
  at?: string | null;
  /** A place that was followed from a text; another value each time. */
  place?: FilePlace | null;
  /** Told which file is open, null for the list. */
  onPicked: (place: FilePlace | null) => void;
  onClose: () => void;
}

export default function FilePanel({ conversation, version, at = null, place = null, onPicked, onClose }: FilePanelProps) {
  const [rows, setRows] = useState<FileListRow[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [picked, setPicked] = useState<FilePlace | null>(place);
  useEffect(() => {
    if (place) setPicked(place);
  }, [place]);
  useEffect(() => onPicked(picked), [picked, onPicked]);
  const [query, setQuery] = useState("");
  const [folder, setFolder] = useState("");
  const [transfer, setTransfer] = useState<Transfer | null>(null);
  const [dropping, setDropping] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const load = useCallback((): void => {
    setProblem(null);
    api.files(conversation, at).then(setRows, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  }, [conversation, at]);
  useEffect(load, [load, version]);
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(() => browseRows(rows ?? [], query, turned), [rows, query, turned]);
  const send = async (files: readonly File[]): Promise<void> => {
    if (files.length === 0) return;
    const paths = await transferred(files, folder, conversation, setTransfer);
    if (paths.length === 0) return;
    toast(t.uploaded(paths.length));
    load();
  };
  const sheet = useMedia(PANEL_IS_SHEET);
  const leave = (): void => (picked ? setPicked(null) : onClose());
  useLeaving(sheet, leave);
  return (
    <aside
      className={`panel ${dropping ? "dropping" : ""}`}
      aria-label={t.files}
      onKeyDown={(event) => {
        if (sheet || event.key !== "Escape") return;
        event.preventDefault();
        leave();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={(event) => {
        event.preventDefault();
        setDropping(false);
        const { files, directories } = dropped(event.dataTransfer);
        if (directories > 0) complain(t.noDirectories);
        void send(files);
      }}
    >
      {picked ? (
        <Preview key={picked.path} conversation={conversation} path={meant(picked.path, rows)} line={picked.line} version={version} at={at} onBack={() => setPicked(null)} />
      ) : (
        <>
          <div className="panel-head">
            <h2>{t.files}</h2>
            {at === null && <IconButton icon={Upload} label={t.upload} onClick={() => picker.current?.click()} />}
            <IconButton icon={X} label={t.close} onClick={onClose} />
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              data-testid="upload"
              onChange={(event) => {
                void send([...(event.target.files ?? [])]);
                event.target.value = "";
              }}
            />
          </div>
          <div className="inspect-tools">
            <input className="input" type="search" aria-label={t.filterFiles} placeholder={t.filterFiles} value={query} onChange={(event) => setQuery(event.target.value)} />
            {at === null && <input className="input" aria-label={t.targetFolder} placeholder={t.targetFolder} value={folder} onChange={(event) => setFolder(event.target.value)} />}
          </div>
          {transfer && <TransferRow transfer={transfer} />}
          {at !== null && <p className="panel-note">{t.filesAtTurn}</p>}
          {problem && <Problem>{problem}</Problem>}
          {rows === null && !problem && <Loading label={t.loading} />}
          {rows !== null && shown.length === 0 && (
            <Empty icon={FileIcon} title={query ? t.nothingFound : t.noFiles}>
              {!query && <p>{t.noFilesText}</p>}
            </Empty>
          )}
          {shown.length > 0 && (
            <Virtuoso
              className="files"
              data={shown}
              computeItemKey={(_, row) => row.key}
              itemContent={(_, row) =>
                row.kind === "folder" ? <FolderRow row={row} onTurn={() => setTurned(flipped(turned, row.path))} /> : <FileRow row={row} onPick={() => setPicked({ path: row.file.path, line: null })} />
              }
            />
          )}
        </>
      )}
    </aside>
  );
}
